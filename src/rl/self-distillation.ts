// Self-distillation on groups without spread (SDPO, OPSD): where every episode of a group is wrong, comparing them teaches
// nothing, but the environment has said why some of their actions failed. The teacher is the same model with another
// episode's failed actions and their errors in its context, as if it had tried them itself; the student is the model as it
// played. On the student's own tokens y,
//
//     A_t = self_distillation · clip( log π(y_t | task, failures, y_<t) − log π(y_t | task, y_<t),  ± MAX_LOG_RATIO )
//
// replaces the group's advantages. Since y is sampled from the student, the policy gradient of these advantages is an
// estimate of −∇ KL(student ‖ teacher) at each token, except for the clip. Both log-probs are constants.
//
// The teacher sees only what the environment told the group, never the gold SQL or its result: a teacher that knows the
// answer would not explore, and its student would learn not to. It sees no action that the student took too: a model tends
// to copy what is in its context, so the failed action itself would become likelier. Groups that are all right keep their
// advantages: being more like the others is no better there (docs/decisions/0031-self-distillation.md).

import { Conversation, type Exchange } from "../gym/players/index.ts";
import type { Datum } from "../lm/engine/index.ts";
import type { GRPOConfig } from "./config.ts";
import type { Environment } from "./environment.ts";
import type { Episode } from "./run/records.ts";
import type { TrainableModel } from "./trainable-model.ts";

/** Clips at a factor of 20 in probability: single tokens must not dominate. */
export const MAX_LOG_RATIO = 3;

/** The environment's part of self-distillation: its prompt, and what failed. */
type FailingEnvironment = Pick<Environment, "prompt" | "failures">;

export interface Distillation {
  /** By index of the episode: an advantage per token, [segments × tokens]. Other episodes keep theirs. */
  readonly advantages: ReadonlyMap<number, readonly Float32Array[]>;
  readonly metrics: Readonly<Record<string, number>>;
}

/** Advantages for the episodes of groups that are all wrong. Episodes of one task are adjacent. */
export async function distill(
  episodes: readonly Episode[],
  { engine, turns }: Pick<TrainableModel, "engine" | "turns">,
  environment: FailingEnvironment,
  config: GRPOConfig,
): Promise<Distillation> {
  const { num_generations: size, self_distillation: weight, temperature } = config;
  const pairs: { readonly episode: number; readonly student: Datum; readonly teacher: Datum }[] = [];
  let groups = 0;
  for (let first = 0; first < episodes.length; first += size) {
    const group = episodes.slice(first, first + size);
    const failures = environment.failures!(group);
    const taught = group.flatMap((episode, i) => {
      const teacher = afterFailures(episode, failures[i]!, { prompt: environment.prompt, turns, config });
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
    const later = episodes[episode]!.segments.slice(1); // a truncated history has lost the failures too
    advantages.set(episode, [signal, ...later.map((segment) => new Float32Array(segment.tokens.length))]);
  }
  return { advantages, metrics: { ...share, ...(tokens > 0 && { "distillation/kl": kl / tokens }) } };
}

/** An episode's first segment with failed turns after the task; null if none fits, or it cannot be learned from. */
function afterFailures(
  episode: Episode,
  failures: readonly Exchange[],
  context: Pick<Environment, "prompt"> & Pick<TrainableModel, "turns"> & { readonly config: GRPOConfig },
): Datum | null {
  const { segments, messages, correctness } = episode;
  const [segment] = segments;
  const first = messages.find(({ role }) => role === "user");
  if (failures.length === 0 || !segment || !first || correctness === null) return null;
  const { prompt, config } = context;
  const { max_context_tokens, max_new_tokens } = config;
  const turns = prompt.tools ? context.turns.withTools(prompt.tools) : context.turns;
  const question = new Conversation(context.turns, { max_context_tokens, max_new_tokens, prompt }).prompt(
    first.content,
  );
  const failed = failures.flatMap(({ assistant, user }) => [
    ...turns.say(assistant),
    ...turns.next(user, { closed: true, from: prompt.tools ? "tool" : "user" }),
  ]);
  if (segment.tokens.length + failed.length > max_context_tokens)
    return afterFailures(episode, failures.slice(0, -1), context);
  return {
    tokens: [...question, ...failed, ...segment.tokens.slice(question.length)],
    weights: [...question.map(() => 0), ...failed.map(() => 0), ...segment.mask.slice(question.length)],
  };
}

function firstSegment({ segments }: Episode): Datum {
  const { tokens, mask } = segments[0]!;
  return { tokens, weights: mask };
}
