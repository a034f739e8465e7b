// Tests models in Ollama's store: they are found by name, and never outside the store.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { ModelLoadError } from "../../../errors.ts";
import { ollamaModel, ollamaStore } from "./ollama.node.ts";

const store = mkdtempSync(join(tmpdir(), "sqlenv-ollama-"));
afterAll(() => rmSync(store, { recursive: true, force: true }));

const HOST = "registry.ollama.ai";
const MODEL = "application/vnd.ollama.image.model";
const digest = (letter: string) => `sha256:${letter.repeat(64)}`;

function put(path: string, content: string | object): void {
  const file = join(store, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
}
const layers = (...given: (readonly [string, string, number])[]) => ({
  schemaVersion: 2,
  layers: given.map(([mediaType, letter, size]) => ({ mediaType, digest: digest(letter), size })),
});

put(`blobs/sha256-${"a".repeat(64)}`, "GGUF");
put(`manifests/${HOST}/library/tiny/latest`, layers(["text/other", "b", 1], [MODEL, "a", 4]));
put(`manifests/${HOST}/library/tiny/1.5b-q4_K_M`, layers([MODEL, "a", 4]));
put(`manifests/${HOST}/someone/tiny/latest`, layers([MODEL, "a", 4]));
put(`manifests/elsewhere.example/org/tiny/q8`, layers([MODEL, "a", 4]));

test.each(["ollama:tiny", "ollama:tiny:1.5b-q4_K_M", "ollama:someone/tiny", "ollama:elsewhere.example/org/tiny:q8"])(
  "%s is found",
  (name) => {
    expect(ollamaModel(name, store)).toBe(join(store, "blobs", `sha256-${"a".repeat(64)}`));
  },
);

test.each([
  "ollama:",
  "ollama::latest",
  "ollama:../../etc/passwd",
  "ollama:a/../b",
  "ollama:..",
  "ollama:a..b",
  "ollama:a//b",
  "ollama:a/b/c/d",
  "ollama:/etc",
  "ollama:tiny:../latest",
  "ollama:tiny:",
  "ollama:tiny:a:b",
  "ollama:ti ny",
  "ollama:a\\b",
  "ollama:tiny\n",
  `ollama:${"x".repeat(200)}`,
])("%j is no name", (name) => {
  expect(() => ollamaModel(name, store)).toThrow(ModelLoadError);
  expect(() => ollamaModel(name, store)).toThrow(/not the name of a model of Ollama's/);
});

test.each<[string, string | object | null, RegExp]>([
  ["absent", null, /no such model in Ollama's store: .*manifests.*ollama list/],
  ["garbage", "no JSON", /its manifest cannot be read/],
  [
    "other",
    { layers: [{ mediaType: MODEL, digest: "sha256:../../../etc/passwd", size: 1 }] },
    /its manifest cannot be read/,
  ],
  ["remote", layers(["text/other", "a", 4]), /it has no weights on this disk/],
  ["gone", layers([MODEL, "c", 4]), /its file is missing: .*sha256-ccc/],
  ["cut", layers([MODEL, "a", 5]), /its file should have 5 bytes, but has 4/],
  ["lora", layers([MODEL, "a", 4], ["application/vnd.ollama.image.adapter", "a", 4]), /with an adapter/],
  ["endless", " ".repeat(1_000_001), /its manifest has more than 1000000 bytes/],
])("a model that is %s is refused in one line", (name, content, message) => {
  if (content !== null) put(`manifests/${HOST}/library/${name}/latest`, content);
  const find = () => ollamaModel(`ollama:${name}`, store);
  expect(find).toThrow(ModelLoadError);
  expect(find).toThrow(message);
});

test("the store is where Ollama's own setting says", () => {
  expect(ollamaStore({ OLLAMA_MODELS: "/disk/models" })).toBe("/disk/models");
  expect(ollamaStore({})).toMatch(/\.ollama.models$/);
});
