// An agent with the Vercel AI SDK: it answers questions about databases that it sees only by its tools. Nothing in it
// is about training: in production it gets another provider.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, hasToolCall, stepCountIs, tool } from "ai";
import { formatObservation, SQLEnvironment } from "sqlenv";
import { z } from "zod";

export const SYSTEM = "Answer the question about the database: look at its tables, query them, then answer.";
/** The tools, with the name of their argument. */
export const TOOLS = { describe: "table", sample: "table", query: "sql", answer: "answer" };

/** Returns a function that answers one question of a data set and says how well. */
export function sqlAgent(data) {
  return async ({ id }, openai) => {
    const env = new SQLEnvironment(data, { step_budget: 8 });
    const question = formatObservation(env.reset({ question_id: id }));
    const act = (name, argument) =>
      tool({
        description: `${name}s, given its ${argument}`,
        inputSchema: z.object({ [argument]: z.string() }),
        execute: (input) => formatObservation(env.step({ action_type: name.toUpperCase(), argument: input[argument] })),
      });
    const tools = Object.fromEntries(Object.entries(TOOLS).map(([name, argument]) => [name, act(name, argument)]));
    await generateText({
      model: createOpenAICompatible({ name: "sqlenv", ...openai })(openai.model),
      system: SYSTEM,
      prompt: question,
      tools,
      stopWhen: [stepCountIs(8), hasToolCall("answer")],
      abortSignal: openai.signal,
    });
    const { correctness, progress, operational } = env.outcome;
    if (correctness === null) return null; // the clock stopped a query
    return { reward: correctness + 0.15 * progress + operational, solved: correctness === 1 };
  };
}
