// An episode so far as a URL fragment: data set, question, budget and actions, readable and safe to paste.
import { DATA_KINDS, type DataChoice } from "./worker-protocol.ts";

/** A copy of the environment's list, because the page does not bundle the environment. */
const ACTION_TYPES = ["DESCRIBE", "SAMPLE", "QUERY", "ANSWER"] as const;

export interface LinkedAction {
  readonly action_type: (typeof ACTION_TYPES)[number];
  readonly argument: string;
}

export interface Link {
  readonly data: DataChoice;
  /** @default drawn by the seed */
  readonly question?: string | undefined;
  /** Draws the question if none is named, and seeds the player. */
  readonly seed: number;
  readonly budget: number;
  readonly player?: string | undefined;
  readonly actions: readonly LinkedAction[];
}

export const DEFAULT_LINK: Link = { data: { kind: "bundled", seed: 42 }, seed: 0, budget: 10, actions: [] };

const MAX_ACTIONS = 100;

/** The fragment, without #. */
export function linkText({ data, question, seed, budget, player, actions }: Link): string {
  const fields = new URLSearchParams({ data: `${data.kind}:${data.seed}` });
  if (question !== undefined) fields.set("question", question);
  fields.set("seed", String(seed));
  if (budget !== DEFAULT_LINK.budget) fields.set("budget", String(budget));
  if (player !== undefined) fields.set("player", player);
  for (const { action_type, argument } of actions) fields.append("do", `${action_type}: ${argument}`);
  return fields.toString();
}

/** Parses a fragment; missing or invalid fields get their defaults. */
export function parseLink(text: string): Link {
  const fields = new URLSearchParams(text.replace(/^#/, ""));
  const [kind, dataSeed = ""] = (fields.get("data") ?? "").split(":");
  const known = DATA_KINDS.find((name) => name === kind);
  const data = known ? { kind: known, seed: wholeNumber(dataSeed, DEFAULT_LINK.data.seed) } : DEFAULT_LINK.data;
  return {
    data,
    question: fields.get("question") || undefined,
    seed: wholeNumber(fields.get("seed"), DEFAULT_LINK.seed),
    budget: Math.min(MAX_ACTIONS, Math.max(1, wholeNumber(fields.get("budget"), DEFAULT_LINK.budget))),
    player: fields.get("player") || undefined,
    actions: fields.getAll("do").slice(0, MAX_ACTIONS).flatMap(actionOf),
  };
}

function actionOf(text: string): LinkedAction[] {
  const [, type, argument = ""] = /^([A-Z]+): ?([\s\S]*)$/.exec(text) ?? [];
  const action_type = ACTION_TYPES.find((name) => name === type);
  return action_type ? [{ action_type, argument }] : [];
}

function wholeNumber(text: string | null, fallback: number): number {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : fallback;
}
