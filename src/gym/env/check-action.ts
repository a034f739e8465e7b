// Checks incoming actions, detects repeats, and formats them for the history.

import {
  ACTION_TYPES,
  actionSchema,
  MAX_ARGUMENT_LENGTH,
  normalizeAction,
  type SQLAction,
  tableNames,
} from "./action.ts";
import type { EnvironmentRules } from "./rules.ts";

/** The two fields of an object that may not be a valid action. */
export interface UncheckedAction {
  readonly action_type: unknown;
  readonly argument: unknown;
}

export type CheckedAction =
  | { readonly ok: true; readonly action: SQLAction }
  | { readonly ok: false; readonly action: UncheckedAction; readonly error: string };

/** Checks what a caller passed as an action. Never throws. */
export function checkAction(given: SQLAction): CheckedAction {
  const action = copyFields(given);
  const bad = (error: string) => ({ ok: false, action, error }) as const;
  const parsed = actionSchema.safeParse(action);
  if (!parsed.success) return bad(`an action is {action_type: ${ACTION_TYPES.join("|")}, argument: text}`);
  const { action_type, argument } = parsed.data;
  if (argument.length > MAX_ARGUMENT_LENGTH)
    return bad(`the argument is longer than ${MAX_ARGUMENT_LENGTH} characters`);
  if (argument.trim() === "") return bad(`${action_type} needs an argument`);
  return { ok: true, action: parsed.data };
}

/** Reads each field once: an untrusted object may have getters that throw. */
function copyFields(action: SQLAction): UncheckedAction {
  try {
    return { action_type: action.action_type, argument: action.argument };
  } catch {
    return { action_type: undefined, argument: undefined };
  }
}

/** A key that is equal for actions with the same effect. */
export function actionKey(action: SQLAction, { describe_many }: EnvironmentRules): string {
  if (action.action_type !== "DESCRIBE" || !describe_many) return normalizeAction(action);
  const names = tableNames(action.argument).map((name) => name.toLowerCase());
  return `DESCRIBE: ${names.sort().join(", ")}`;
}

const HISTORY_ARGUMENT = 200; // maximum characters of an argument in the history

/** Formats an action as a line of the observation's `action_history`. */
export function historyLine(action: UncheckedAction, error_class: string | undefined): string {
  const shownText = (value: unknown) => (typeof value === "string" ? value : "?");
  const type = shownText(action.action_type).slice(0, 20);
  const argument = shownText(action.argument)
    .slice(0, 2 * HISTORY_ARGUMENT)
    .replace(/\s+/g, " ")
    .trim();
  const shown = argument.length <= HISTORY_ARGUMENT ? argument : `${argument.slice(0, HISTORY_ARGUMENT)}…`;
  return `${type}: ${shown}${error_class ? ` -> ${error_class}` : ""}`;
}
