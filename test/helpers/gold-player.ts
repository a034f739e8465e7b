// A scripted model for other harnesses, which write an observation as JSON into the conversation: it queries first and
// answers some questions wrong. What it does to a question is known, so rewards can be compared with a replay.
import type { DataSet, QuestionRecord } from "../../src/gym/data/index.ts";
import type { SQLEnvironment } from "../../src/gym/env/index.ts";
import { parseAction } from "../../src/gym/env/index.ts";
import type { ChatMessage } from "./scripted-chat.ts";

/** What it says about a question, turn by turn. */
export function goldReplies({ question_text, gold_sql, gold_answer }: QuestionRecord): string[] {
  return [
    `Let me look first.\nQUERY: ${gold_sql}`,
    "SAMPLE: no_such_table",
    question_text.length % 3 === 0 ? "ANSWER: surely not this" : `ANSWER: ${gold_answer}`,
  ];
}

/** The model. */
export function goldPlayer(data: DataSet): (messages: readonly ChatMessage[]) => string {
  return (messages) => {
    const said = messages.map(({ content }) =>
      typeof content === "string" ? content : content.map(({ text }) => text).join("\n"),
    );
    const asked = data.questions.find(({ question_text }) => said.some((text) => text.includes(quoted(question_text))));
    const turn = messages.filter(({ role }) => role === "assistant").length;
    return asked ? (goldReplies(asked)[turn] ?? "ANSWER: too late") : "ANSWER: no such question";
  };
}

/** The sum of rewards of its episode in this environment, as verifiers adds them up. */
export function goldReward(env: SQLEnvironment, question: QuestionRecord): number {
  env.reset({ question_id: question.question_id });
  let sum = 0;
  for (const reply of goldReplies(question)) sum += env.step(parseAction(reply).action).reward ?? 0;
  return sum;
}

/** A question as a JSON text inside a JSON text. */
function quoted(question: string): string {
  return JSON.stringify(question).slice(1, -1);
}
