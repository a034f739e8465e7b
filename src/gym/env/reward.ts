// Step rewards. A right answer also pays what is left of the exploration allowance (`looking_cap`) and of the progress
// reward. Every right episode thus earns the same before costs, and padding it with exploration cannot pay.
import { z } from "zod";

export const rewardSchema = z
  .object({
    exec_ok: z.number().min(0).default(0.02).describe("for an action that works"),
    new_info: z.number().min(0).default(0.01).describe("for the first sight of a table or of a result"),
    looking_cap: z.number().min(0).default(0.1).describe("exec_ok and new_info together, an episode"),
    repeat: z.number().max(0).default(-0.03).describe("for repeating an action, and for a turn without an action"),
    step_cost: z.number().max(0).default(-0.005).describe("for each action"),
    progress: z.number().min(0).default(0.15).describe("for coming from Φ = 0 to Φ = 1"),
    correctness: z.number().default(1).describe("for the right answer"),
  })
  .strict()
  .readonly();

export type RewardConfig = z.infer<typeof rewardSchema>;

export const rewardBreakdownSchema = z
  .object({
    exec_ok: z.number().describe("the action worked; at a right answer, what is left of the looking allowance"),
    new_info: z.number().describe("first sight of a table or of a result"),
    repeat: z.number().describe("the action was done before, or there was none"),
    step_cost: z.number().describe("every action"),
    progress: z.number().describe("the best result so far came nearer to the gold"),
    correctness: z.number().describe("the answer is right"),
  })
  .readonly();

/** The reward of one step by component; the step's reward is the sum. */
export type RewardBreakdown = z.infer<typeof rewardBreakdownSchema>;

/** The facts of a step that rewards depend on. */
export interface StepFacts {
  readonly worked: boolean;
  readonly isNew: boolean;
  readonly isRepeat: boolean;
  /** Whether the turn had no valid action: a missing argument or an unknown type. */
  readonly isEmpty?: boolean | undefined;
  /** Φ of this step's result, if there is one. */
  readonly phi?: number | undefined;
  /** Whether the answer was right; set only for an ANSWER. */
  readonly correct?: boolean | undefined;
}

export const NO_REWARD: RewardBreakdown = Object.freeze({
  exec_ok: 0,
  new_info: 0,
  repeat: 0,
  step_cost: 0,
  progress: 0,
  correctness: 0,
});

/** Computes an episode's rewards step by step. */
export class RewardMeter {
  readonly #config: RewardConfig;
  #lookingLeft: number;
  #phi = 0;

  constructor(config: RewardConfig) {
    this.#config = config;
    this.#lookingLeft = config.looking_cap;
  }

  /** The highest Φ so far; 1 after a right answer. */
  get phi(): number {
    return this.#phi;
  }

  /** Computes the rewards of one step. */
  book({ worked, isNew, isRepeat, isEmpty = false, phi = 0, correct }: StepFacts): RewardBreakdown {
    const config = this.#config;
    const pays = worked && !isRepeat;
    const gained = Math.max(0, (correct ? 1 : phi) - this.#phi);
    this.#phi += gained;
    return {
      exec_ok: correct ? this.#look(this.#lookingLeft) : pays ? this.#look(config.exec_ok) : 0,
      new_info: pays && isNew ? this.#look(config.new_info) : 0,
      // An empty turn costs as much as a repeat: if it were free, writing nothing would beat a failed attempt.
      repeat: isRepeat || isEmpty ? config.repeat : 0,
      step_cost: config.step_cost,
      progress: tidy(gained * config.progress),
      correctness: correct ? config.correctness : 0,
    };
  }

  #look(amount: number): number {
    const paid = Math.min(amount, this.#lookingLeft);
    this.#lookingLeft = tidy(this.#lookingLeft - paid);
    return tidy(paid);
  }
}

/** A step's reward: the sum of its components. */
export function sumOf(breakdown: RewardBreakdown): number {
  return tidy(Object.values(breakdown).reduce((sum: number, part: number) => sum + part, 0));
}

/** GRPO's operational reward: exec_ok + new_info + repeat, without the step cost. */
export function operationalOf({ exec_ok, new_info, repeat }: RewardBreakdown): number {
  return tidy(exec_ok + new_info + repeat);
}

/** Rounds off float noise: 0.03, not 0.030000000000000002. */
function tidy(value: number): number {
  return Math.round(value * 1e9) / 1e9;
}
