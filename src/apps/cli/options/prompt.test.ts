import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { DEFAULT_RULES, GUIDED_RULES } from "../../../gym/env/index.ts";
import { promptId } from "../../../gym/players/index.ts";
import { readModelMetadata, writeModelMetadata } from "../../../rl/run/model-metadata.node.ts";
import { type PromptFlags, promptChoice } from "./prompt.ts";
import { rulesNamed } from "./rules.ts";

const folder = mkdtempSync(join(tmpdir(), "sqlenv-prompt-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const idOf = (flags: PromptFlags, fallback: Parameters<typeof promptChoice>[1] = { prompt: "compact" }) =>
  promptId(promptChoice(flags, fallback));

test("flags override what the model was trained with", () => {
  const trained = { prompt: "instruct", shots: 3 } as const;
  expect(idOf({})).toBe("compact-1");
  expect(idOf({}, trained)).toBe("instruct-1/3-shot");
  expect(idOf({ shots: 0 }, trained)).toBe("instruct-1");
  expect(idOf({ prompt: "instruct" }, trained)).toBe("instruct-1/3-shot");
  expect(idOf({ prompt: "compact" }, trained)).toBe("compact-1"); // without the examples of the other prompt
});

test("a file has a custom prompt, as plain text or JSON", () => {
  const words = file("my words.md", "Play.\n");
  expect(promptChoice({ promptFile: words, shots: 1 }, {})).toMatchObject({
    prompt: "instruct",
    shots: 1,
    custom: { id: expect.stringMatching(/^my_words@[0-9a-f]{8}$/), system: "Play." },
  });
  const shots = [{ user: "a", assistant: "ANSWER: 1" }];
  const own = file("own.json", JSON.stringify({ id: "mine-2", system: "Play.", prompt: "compact", shots }));
  expect(promptChoice({ promptFile: own }, {})).toEqual({
    prompt: "compact",
    shots: 0,
    custom: { id: "mine-2", system: "Play.", shots },
  });
  expect(idOf({ promptFile: own })).toBe("mine-2");
});

test.each([
  ["number.json", '{"system": 5}', /^--prompt-file: system: .*number\.json/],
  ["key.json", '{"system": "x", "shot": []}', /^--prompt-file: the file: Unrecognized key: "shot"/],
  ["cut.json", "{", /^--prompt-file: not JSON/],
  ["empty.md", " \n", /^--prompt-file: the file is empty/],
  ["long.md", "x".repeat(50_001), /^--prompt-file: the file has 50001 characters/],
])("a bad file is one line: %s", (name, text, message) => {
  expect(() => promptChoice({ promptFile: file(name, text) }, {})).toThrow(message);
});

test("a missing file gives a one-line error", () => {
  expect(() => promptChoice({ promptFile: join(folder, "no.md") }, {})).toThrow(
    /^--prompt-file cannot be read: .*no\.md/,
  );
});

test("a model's folder records its prompt and rules", () => {
  expect(readModelMetadata(folder)).toBeUndefined();
  writeModelMetadata(folder, { prompt: "compact", shots: 0 }, DEFAULT_RULES);
  expect(readModelMetadata(folder)).toEqual({ prompt: { prompt: "compact", shots: 0 }, rules: DEFAULT_RULES });
  writeModelMetadata(folder, { prompt: "instruct", shots: 1 }, GUIDED_RULES);
  expect(readModelMetadata(folder)).toEqual({ prompt: { prompt: "instruct", shots: 1 }, rules: GUIDED_RULES });
  expect(rulesNamed({}, GUIDED_RULES)).toEqual(GUIDED_RULES);
  expect(rulesNamed({ guided: false }, GUIDED_RULES)).toEqual(DEFAULT_RULES);
  file("sqlenv.json", '{"prompt": "compact"}');
  expect(readModelMetadata(folder)).toEqual({ prompt: { prompt: "compact", shots: 0 }, rules: DEFAULT_RULES });
  file("sqlenv.json", '{"prompt": "compact", "rules": "env-9"}');
  expect(() => readModelMetadata(folder)).toThrow(/rules: rules this version does not know/);
  file("sqlenv.json", '{"prompt": "instruct", "prompt_id": "instruct-0"}');
  expect(() => readModelMetadata(folder)).toThrow(/prompt_id: instruct-0, this version has instruct-1/);
  file("sqlenv.json", '{"prompt": "other"}');
  expect(() => readModelMetadata(folder)).toThrow(/^sqlenv\.json cannot be read \(prompt: /);
  file("sqlenv.json", "{");
  expect(() => readModelMetadata(folder)).toThrow(/^sqlenv\.json cannot be read/);
});
