// An OpenAI-compatible chat endpoint whose model is a function of the conversation.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface ChatMessage {
  readonly role: string;
  readonly content: string | readonly { readonly text: string }[];
}

export interface ScriptedChat {
  /** Ends in /v1. */
  readonly url: string;
  close(): void;
}

/** Starts it on a free port. Replies whole or as a stream, as the request says. */
export async function scriptedChat(model: (messages: readonly ChatMessage[]) => string): Promise<ScriptedChat> {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    if (request.method !== "POST" || request.url !== "/v1/chat/completions") {
      response.writeHead(404).end("{}");
      return;
    }
    const asked = JSON.parse(body) as { model: string; messages: ChatMessage[]; stream?: boolean };
    const content = model(asked.messages);
    const head = { id: "scripted", created: 0, model: asked.model };
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    if (!asked.stream) {
      const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ ...head, object: "chat.completion", choices, usage }));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (more: object) =>
      response.write(`data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...more })}\n\n`);
    send({ choices: [{ index: 0, delta: { role: "assistant", content }, finish_reason: null }] });
    send({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
    send({ choices: [], usage });
    response.end("data: [DONE]\n\n");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
