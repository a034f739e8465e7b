// Every key of TRL's GRPOConfig is a setting of ours, with TRL's default noted, or in docs/trl-keys.md with a reason.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { CONFIG_KEYS, configSchema } from "../../src/rl/config.ts";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const stored = JSON.parse(read("test/reference/trl-grpo-config.json")) as Readonly<
  Record<"own" | "inherited", Record<string, unknown>> & { note: string }
>;
const defaults = { ...stored.own, ...stored.inherited };

/** The rows of the page's tables: keys in the first cell, the reason in the second. */
const page = read("docs/trl-keys.md");
const rows = [...page.matchAll(/^\| (`.+?`) \| (.*) \|$/gm)].map(([, keys, reason]) => ({
  keys: [...keys!.matchAll(/`(\w+)`/g)].map(([, key]) => key!),
  reason: reason!,
}));
const shared = CONFIG_KEYS.filter((key) => key in defaults);

describe("TRL's keys", () => {
  test("each is a setting here, or on the page with a reason, once", () => {
    const listed = [...shared, ...rows.flatMap(({ keys }) => keys)];
    expect(listed.toSorted()).toEqual(Object.keys(defaults).toSorted());
    expect(rows.filter(({ reason }) => reason.length < 10)).toEqual([]);
  });

  test("settings that a reason names exist", () => {
    const named = rows.flatMap(({ reason }) => [...reason.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
    const known = new Set<string>(CONFIG_KEYS);
    expect(named.filter((name) => !known.has(name))).toEqual([]);
  });

  test("a setting of TRL's name notes TRL's default", () => {
    const shape = configSchema.unwrap().shape;
    const noted = Object.fromEntries(shared.map((key) => [key, (shape[key].meta() as { trl?: unknown }).trl]));
    expect(noted).toEqual(Object.fromEntries(shared.map((key) => [key, defaults[key]])));
  });

  test("the page is about the version of the list", () => {
    expect(page).toContain(stored.note.match(/TRL \d+\.\d+\.\d+/)![0]);
  });
});
