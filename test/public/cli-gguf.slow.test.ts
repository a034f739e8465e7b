// A GGUF file works wherever a model folder does: evaluation, export, Ollama's store.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CHATML_TEMPLATE } from "sqlenv/lm/model";
import { loadModelFolder } from "sqlenv/lm/model/node";
import { afterAll, expect, test } from "vitest";
import { sqlenvInside } from "../helpers/cli-process.ts";
import { ggufOf, ggufParts } from "../helpers/gguf-bytes.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-cli-gguf-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const model = join(scratch, "model.gguf");
const parts = ggufParts({ pre: "smollm", config: { max_position_embeddings: 2048 } });
parts.facts.set("tokenizer.chat_template", { text: CHATML_TEMPLATE }).set("general.license", { text: "mit" });
writeFileSync(model, ggufOf(parts));

test("eval plays with a model from Ollama's store", async () => {
  const store = join(scratch, "ollama");
  const digest = "a".repeat(64);
  const manifests = join(store, "manifests", "registry.ollama.ai", "library", "tiny");
  for (const folder of [manifests, join(store, "blobs")]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(store, "blobs", `sha256-${digest}`), readFileSync(model));
  const layer = {
    mediaType: "application/vnd.ollama.image.model",
    digest: `sha256:${digest}`,
    size: statSync(model).size,
  };
  writeFileSync(join(manifests, "latest"), JSON.stringify({ layers: [layer] }));
  const args = ["--player", "model", "--device", "cpu", "--threads", "1", "--episodes", "2", "--max-new-tokens", "8"];
  const { code, stdout, stderr } = await sqlenvInside(
    ["eval", ...args, "--model", "ollama:tiny", "--step-budget", "2", "--json"],
    "",
    { OLLAMA_MODELS: store },
  );
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ episodes: 2, errors: 0 });
});

test("export keeps the training prompt in a folder, and prints its flags for a file", async () => {
  const [trained, merged] = ["trained", "merged"].map((name) => join(scratch, name)) as [string, string];
  expect((await sqlenvInside(["export", "--model", model, "--merge", trained])).code).toBe(0);
  const use = { prompt: "instruct", shots: 3, prompt_id: "instruct-1/3-shot", rules: "env-1+hints+stuck3+last+many" };
  writeFileSync(join(trained, "sqlenv.json"), JSON.stringify(use));
  const args = ["export", "--model", trained, "--merge", merged, "--gguf", join(scratch, "asked.gguf")];
  const { code, stdout, stderr } = await sqlenvInside(args);
  expect(code, stderr).toBe(0);
  expect(stdout).toContain("evaluate the GGUF file as the model was trained: --prompt instruct --shots 3 --guided");
  expect(JSON.parse(readFileSync(join(merged, "sqlenv.json"), "utf8"))).toEqual(use);
});

test("exporting as a folder, as a file, and the folder as a file gives the same model", async () => {
  const [folder, again, last] = ["folder", "again.gguf", "last.gguf"].map((name) => join(scratch, name)) as string[];
  for (const args of [
    ["--model", model, "--merge", folder!, "--gguf", again!, "--type", "f32"],
    ["--model", folder!, "--gguf", last!, "--type", "f32"],
  ]) {
    const { code, stderr } = await sqlenvInside(["export", ...args]);
    expect(code, stderr).toBe(0);
  }
  const before = await loadModelFolder(model);
  for (const path of [folder!, again!, last!]) {
    const { config, weights, tokenizer, chatTemplate, generationConfig } = await loadModelFolder(path);
    expect(config).toEqual(before.config);
    expect(generationConfig).toEqual(before.generationConfig);
    expect(chatTemplate).toBe(CHATML_TEMPLATE);
    expect(tokenizer.files.tokenizer).toEqual(before.tokenizer.files.tokenizer);
    for (const name of before.weights.names) {
      expect(await weights.read(name), name).toEqual(await before.weights.read(name));
    }
    if (path === again) expect(weights.metadata["general.license"]).toBe("mit");
    await weights.close();
  }
  await before.weights.close();
});

test.each([
  ["nowhere.gguf", /no such GGUF file: .*nowhere\.gguf; check the path \(model_load\)/],
  ["some/nowhere.gguf", /no such GGUF file/],
  ["cut.gguf", /cut\.gguf: tensor .* ends after the end of the file/],
  ["other.gguf", /other\.gguf: it is not a GGUF file/],
  ["empty.gguf", /empty\.gguf: the file ends within its header/],
])("%s is refused in one line, and nothing is written", async (name, message) => {
  const path = join(scratch, name);
  if (name === "cut.gguf") writeFileSync(path, readFileSync(model).subarray(0, -1000));
  if (name === "other.gguf") writeFileSync(path, "{}".repeat(100));
  if (name === "empty.gguf") writeFileSync(path, "");
  const out = join(scratch, "never");
  const { code, stderr } = await sqlenvInside(["export", "--model", path, "--merge", out]);
  expect(code).toBe(1);
  expect(stderr).toMatch(message);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  expect(existsSync(out)).toBe(false);
});
