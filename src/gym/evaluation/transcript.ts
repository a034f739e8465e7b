// Formats an episode as readable text: the question, then each turn with its result and reward.
import type { RewardBreakdown, SQLObservation } from "../env/index.ts";
import type { EpisodeRecord, StepRecord } from "../episode.ts";

/**
 * Formats a whole episode.
 *
 * @example
 * const record = await playEpisode(env, oraclePlayer(), { question: data.questions[0]! });
 * console.log(formatTranscript(record));
 */
export function formatTranscript(record: EpisodeRecord): string {
  const { question_id, difficulty, database_name, seen, question, start, steps } = record;
  if (isText(record))
    return [
      `${question_id} (${database_name}), ${record.player}`,
      `Task: ${question}`,
      ...steps.map(formatStep),
      formatVerdict(record),
    ].join("\n");
  const head = [
    `${question_id} (${difficulty}, ${database_name}, ${seen ? "seen" : "unseen"} database), ${record.player}`,
    `Question: ${question}`,
    ...(start ? [`Tables: ${start.schema_info}`] : []),
  ];
  return [...head, ...steps.map(formatStep), formatVerdict(record)].join("\n");
}

/** Whether an episode is of an environment that is not SQL: its actions are texts. */
function isText({ steps }: Pick<EpisodeRecord, "steps">): boolean {
  return (steps[0]?.action.action_type as string | undefined) === "TEXT";
}

/** Formats one turn: the action, its result and its reward. */
export function formatStep(step: StepRecord): string {
  const { action, text, parse_error, observation } = step;
  const { result, error } = observation;
  return [
    `${observation.step_count}. ${isText({ steps: [step] }) ? "" : `${action.action_type}: `}${indent(action.argument, "   ")}`,
    ...(parse_error !== null ? [`   (not understood, taken as a query: ${JSON.stringify(text ?? "")})`] : []),
    ...(error !== null ? [`   error: ${indent(error, "   ")}`] : []),
    ...(result !== "" ? [`   ${indent(result, "   ")}`] : []),
    `   ${explainReward(observation)}`,
  ].join("\n");
}

/** Formats how an episode ended. */
export function formatVerdict(record: EpisodeRecord): string {
  const { correctness, reward, step_count, error, done_reason } = record;
  const steps = step_count === 1 ? "1 step" : `${step_count} steps`;
  if (error !== null) return `=> broken after ${steps}: ${error}`;
  if (correctness === null) return `=> cannot be scored, ${steps}`;
  const missing =
    done_reason === "stuck" ? "no answer, the same action failed too often" : "no answer within the budget";
  const verdict = correctness === 1 ? "right" : done_reason === "answered" ? "wrong" : missing;
  if (isText(record))
    return `=> ${correctness === 1 ? "solved" : "not solved"}${done_reason ? "" : ", not ended"}, reward ${signed(reward ?? 0)}, ${steps}`;
  return `=> ${verdict}, reward ${signed(reward ?? 0)}, ${steps}`;
}

const WORDS: Readonly<Record<keyof RewardBreakdown, string>> = {
  exec_ok: "it worked",
  new_info: "new",
  repeat: "done before",
  step_cost: "a step",
  progress: "closer to the expected result (rows or values)",
  correctness: "right",
};

/** Components that a right answer pays in full, however the answer was found. */
const PAID_OUT: Readonly<Partial<Record<keyof RewardBreakdown, string>>> = {
  exec_ok: "rest of the exploration reward",
  progress: "rest of the progress reward",
};

/** Describes one component of a step's reward in words; a component that SQL does not have is described by its name. */
export function rewardPartText(
  part: string,
  { correctness }: Pick<RewardBreakdown, "correctness">,
  error_class?: string | null,
): string {
  const paidOut = correctness ? PAID_OUT[part as keyof RewardBreakdown] : undefined;
  if (paidOut) return paidOut;
  return part === "repeat" && error_class === "bad_action"
    ? "no action"
    : (WORDS[part as keyof RewardBreakdown] ?? part);
}

/** Explains a step's reward: "+0.025: +0.02 it worked, +0.01 new, −0.005 a step". */
export function explainReward({
  reward,
  reward_breakdown,
  error_class,
}: Pick<SQLObservation, "reward" | "reward_breakdown"> & Partial<Pick<SQLObservation, "error_class">>): string {
  if (reward === null) return "not scored";
  const parts = Object.entries(reward_breakdown)
    .filter(([, value]) => value !== 0)
    .map(([part, value]) => `${signed(value)} ${rewardPartText(part, reward_breakdown, error_class)}`);
  if (parts.length <= 1) return parts[0] ?? signed(reward);
  return `${signed(reward)}: ${parts.join(", ")}`;
}

/** Formats a number with its sign and at most three decimals. */
export function signed(value: number): string {
  const text = String(Math.round(Math.abs(value) * 1000) / 1000);
  return text === "0" ? text : value < 0 ? `−${text}` : `+${text}`;
}

function indent(text: string, by: string): string {
  return text.replaceAll("\n", `\n${by}`);
}
