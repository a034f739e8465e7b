// Self-distillation on groups without spread (SDPO, OPSD): where every episode of a group is wrong, comparing them teaches
// nothing, but the environment has said why some of their actions failed. The teacher is the same model with a sibling's
// failed actions and their errors in its history, as if it had tried them itself; the student is the model as it played.
// On the student's own tokens y,
//
//     A_t = self_distillation · clip( log π(y_t | question, failures, y_<t) − log π(y_t | question, y_<t),  ± MAX_LOG_RATIO )
//
// takes the place of the group's advantages. Since y is sampled from the student, the policy gradient of these advantages
// is an estimate of −∇ KL(student ‖ teacher) at each token, but for the clip. Both log-probs are constants.
//
// The teacher sees only what the environment told the group, never the gold SQL or its result: a teacher who knows the
// answer would not look at tables, and its student would learn not to look. It sees no action that the student took too: a
// model tends to copy what is in its context, so the failed action itself would become likelier. Groups that are right
// throughout are left alone: to be more like one's siblings is no better there (docs/decisions/0031-self-distillation.md).

import { normalizeAction, rulesOf } from "../gym/env/index.ts";
import { Conversation, type Prompt, promptFor } from "../gym/players/index.ts";
import type { Datum } from "../lm/engine/index.ts";
import type { GRPOConfig } from "./config.ts";
import type { Episode } from "./run/records.ts";
import type { TrainableModel } from "./trainer.ts";

/** A token 20 times likelier or less likely counts as much as one that is impossible: single tokens must not dominate. */
export const MAX_LOG_RATIO = 3;
/** Failures the teacher is shown: more of them say little more, and take room in the context. */
const MAX_FAILURES = 2;

type Step = Episode["steps"][number];

export interface Distillation {
  /** By episode: an advantage for each token of each segment. Other episodes keep theirs. */
  readonly advantages: ReadonlyMap<number, readonly Float32Array[]>;
  readonly metrics: Readonly<Record<string, number>>;
}

/** The advantages of episodes in groups that are wrong throughout. Episodes of one question are adjacent. */
export async function distill(
  episodes: readonly Episode[],
  { engine, turns }: Pick<TrainableModel, "engine" | "turns">,
  config: GRPOConfig,
): Promise<Distillation> {
  const { num_generations: size, self_distillation: weight, temperature } = config;
  const prompt = promptFor({ prompt: config.prompt, shots: config.shots }, rulesOf(config));
  const pairs: { readonly episode: number; readonly student: Datum; readonly teacher: Datum }[] = [];
  let groups = 0;
  for (let first = 0; first < episodes.length; first += size) {
    const group = episodes.slice(first, first + size);
    const failures = failuresOf(group);
    const taught = group.flatMap((episode, i) => {
      const teacher = afterFailures(episode, othersFailures(failures, episode), prompt, turns, config);
      return teacher ? [{ episode: first + i, student: firstSegment(episode), teacher }] : [];
    });
    pairs.push(...taught);
    if (taught.length > 0) groups++;
  }
  const share = { "distillation/groups": groups / (episodes.length / size) };
  if (pairs.length === 0) return { advantages: new Map(), metrics: share };

  const data = [...pairs.map(({ student }) => student), ...pairs.map(({ teacher }) => teacher)];
  const logprobs = await engine.logprobs(data, { temperature });
  const advantages = new Map<number, readonly Float32Array[]>();
  let [kl, tokens] = [0, 0];
  for (const [p, { episode, student, teacher }] of pairs.entries()) {
    const added = teacher.tokens.length - student.tokens.length;
    const [own, taught] = [logprobs[p]!, logprobs[pairs.length + p]!];
    const signal = new Float32Array(student.tokens.length);
    for (let t = 0; t < signal.length; t++) {
      if (student.weights[t] === 0) continue;
      const ratio = taught[t + added]! - own[t]!;
      signal[t] = weight * Math.max(-MAX_LOG_RATIO, Math.min(MAX_LOG_RATIO, ratio));
      kl -= ratio;
      tokens++;
    }
    const later = episodes[episode]!.segments.slice(1); // a cut history has lost the failures too
    advantages.set(episode, [signal, ...later.map((segment) => new Float32Array(segment.tokens.length))]);
  }
  return { advantages, metrics: { ...share, ...(tokens > 0 && { "distillation/kl": kl / tokens }) } };
}

/** Actions that failed in a group that is wrong throughout, one for each error; none of other groups. */
export function failuresOf(group: readonly Episode[]): Step[] {
  const scored = group.filter(({ correctness }) => correctness !== null);
  if (scored.some(({ correctness }) => correctness === 1)) return [];
  const known = new Set<string>();
  return scored
    .flatMap(({ steps }) => steps)
    .filter(({ observation: { error, error_class, done }, parse_error }) => {
      if (error === null || done || parse_error !== null || error_class === "repeat" || error_class === "bad_action")
        return false;
      return !known.has(error) && known.add(error);
    });
}

/** Failures of actions that an episode did not take itself. */
function othersFailures(failures: readonly Step[], { steps }: Episode): Step[] {
  const own = new Set(steps.map(({ action }) => normalizeAction(action)));
  return failures.filter(({ action }) => !own.has(normalizeAction(action))).slice(0, MAX_FAILURES);
}

/** An episode's first segment with failed turns after its question; null where none fits, or it cannot be learned from. */
function afterFailures(
  episode: Episode,
  failures: readonly Step[],
  prompt: Prompt,
  plain: TrainableModel["turns"],
  config: GRPOConfig,
): Datum | null {
  const { start, segments, correctness } = episode;
  const [segment] = segments;
  if (failures.length === 0 || !segment || !start || correctness === null) return null;
  const { max_context_tokens, max_new_tokens } = config;
  const turns = prompt.tools ? plain.withTools(prompt.tools) : plain;
  const question = new Conversation(plain, { max_context_tokens, max_new_tokens, prompt }).prompt(start);
  const failed = failures.flatMap(({ action, observation }) => [
    ...turns.say(prompt.write(action)),
    ...turns.next(prompt.format(observation), { closed: true, from: prompt.tools ? "tool" : "user" }),
  ]);
  if (segment.tokens.length + failed.length > max_context_tokens)
    return afterFailures(episode, failures.slice(0, -1), prompt, plain, config);
  return {
    tokens: [...question, ...failed, ...segment.tokens.slice(question.length)],
    weights: [...question.map(() => 0), ...failed.map(() => 0), ...segment.mask.slice(question.length)],
  };
}

function firstSegment({ segments }: Episode): Datum {
  const { tokens, mask } = segments[0]!;
  return { tokens, weights: mask };
}
