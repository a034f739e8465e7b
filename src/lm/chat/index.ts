// Chat with a model: messages in, a completion with its token ids and log-probs out.

export type { ChatMessage, Tool } from "../model/text/chat-template.ts";
export {
  Chat,
  type ChatModel,
  type Completion,
  type CompletionOptions,
  type CompletionPart,
} from "./chat.ts";
export type { ParsedCall } from "./tool-calls.ts";
