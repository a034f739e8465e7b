// Checks what an environment returns: it may be anybody's code.
import { quoted, SqlEnvError, textOf } from "../errors.ts";
import type { Environment, Task, TextEnvironment, TextReset, TextStep } from "./environment.ts";

/** What `env` returned, if it is an environment; otherwise it throws. */
export function checkOpened(name: string, returned: unknown): TextEnvironment {
  const { reset, step } = objectOf(returned);
  if (typeof reset === "function" && typeof step === "function") return returned as TextEnvironment;
  throw new SqlEnvError("environment_failed", {
    what: `environment ${name}: \`env\` must return an environment with reset() and step(), not`,
    value: returned instanceof Promise ? "a promise" : textOf(returned),
    remedy: "what takes time belongs in reset(), which may be asynchronous",
  });
}

/** What `reset` returned, if it is a text; otherwise it throws. */
export function checkReset(environment: Environment, task: Task, returned: unknown): TextReset {
  const { text } = objectOf(returned);
  if (typeof text !== "string")
    throw wrongReturn(environment, task, "reset() must return { text: string }, not", returned);
  return { text };
}

/** What `step` returned, if every field is what it should be; otherwise it throws. */
export function checkStep(environment: Environment, task: Task, returned: unknown): TextStep {
  const step = objectOf(returned);
  const wrong = (what: string, value: unknown) => wrongReturn(environment, task, `step() returned ${what}`, value);
  if (typeof step.text !== "string") throw wrong("a text that is not a string but", step.text);
  if (typeof step.done !== "boolean") throw wrong("a `done` that is not a boolean but", step.done);
  if (step.reward !== null && !Number.isFinite(step.reward))
    throw wrong("a reward that is neither a finite number nor null but", step.reward);
  if (step.solved !== undefined && typeof step.solved !== "boolean")
    throw wrong("a `solved` that is not a boolean but", step.solved);
  for (const field of ["rewards", "metrics"] as const) {
    const odd = Object.entries(objectOf(step[field])).find(([, value]) => !Number.isFinite(value));
    if (odd) throw wrong(`${field} in which ${JSON.stringify(odd[0])} is not a finite number but`, odd[1]);
  }
  return step as unknown as TextStep;
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function wrongReturn({ name }: Environment, { id }: Task, what: string, value: unknown): SqlEnvError {
  return new SqlEnvError("environment_failed", {
    what: `environment ${name}, task ${id}: ${what}`,
    value: quoted(value),
    remedy: "a step has a text, a reward (a finite number, or null if it is not known) and done (true or false)",
  });
}
