// What is due at a step: evaluations, checkpoints, and the tasks that a batch draws from.
import { type Batching, type GRPOConfig, stepsOf } from "./config.ts";
import type { Task } from "./environment.ts";
import type { TrainerState } from "./run/store.ts";
import { easyTasks } from "./task-order.ts";

/** Tasks, and the number of the first batch that draws from them. */
export interface TaskPool {
  readonly tasks: readonly Task[];
  readonly first: number;
}

/** The pool of a batch by its number: easy tasks for the first easy_steps, then all. Throws if the easy ones are too few. */
export function taskPools(
  tasks: readonly Task[],
  config: GRPOConfig,
  { slices, accumulations }: Batching,
  environment: string,
): (batch: number) => TaskPool {
  const easyBatches = Math.ceil((config.easy_steps * accumulations) / (slices * config.num_iterations));
  const all = { tasks, first: easyBatches };
  if (easyBatches === 0) return () => all;
  const easy = { tasks: easyTasks(tasks, environment), first: 0 };
  stepsOf(config, easy.tasks.length); // throws if they do not fill a batch
  return (batch) => (batch < easyBatches ? easy : all);
}

/** Whether an evaluation is due before the next step: by eval_steps, or at one of the steps of eval_at. */
export function isEvaluationDue({ eval_steps, eval_at }: GRPOConfig, { step, evaluated }: TrainerState): boolean {
  if (eval_steps === 0) return false;
  return passedMultiple(eval_steps, evaluated, step) || eval_at.some((at) => evaluated < at && at <= step);
}

/** Whether a checkpoint is due; @param saved is the step of the newest one, -1 for none. */
export function isSaveDue({ save_steps }: GRPOConfig, { step }: TrainerState, saved: number): boolean {
  return passedMultiple(save_steps, Math.max(0, saved), step);
}

/** Whether something done every n steps is due; a batch of several steps may pass over the exact one. */
function passedMultiple(every: number, last: number, step: number): boolean {
  return Math.floor(step / every) > Math.floor(last / every);
}
