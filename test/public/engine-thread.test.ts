// The engine in its own thread: the built package, a real folder, the same methods.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import * as root from "sqlenv";
import * as before from "sqlenv/engine/node";
import { startEngine } from "sqlenv/lm/engine/node";
import { startTrainableEngine } from "sqlenv/rl/node";
import { afterAll, expect, test } from "vitest";
import { ROOT } from "../helpers/dockerfile.ts";
import { writeTinyFolder } from "../helpers/tiny-folder.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-engine-"));
const folder = join(scratch, "model");
await writeTinyFolder(folder);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const context = [5, 9, 2, 7, 7, 3, 11, 40];
const request = { prompt: context, max_new_tokens: 12, stop_ids: [], key: ["test"] };
const batch = [{ tokens: context, weights: context.map(() => 1) }];
const loss = { loss: { type: "cross_entropy" } } as const;
const policy = { loss: { type: "policy", loss_type: "dapo" } } as const;

test("the caller's thread stays free, and a checkpoint resumes to bitwise equal results", async () => {
  const engine = await startEngine(folder, { threads: 2 });
  const streamed: number[] = [];
  const sample = await engine.sample({ ...request, onToken: (token) => streamed.push(token) });
  expect(streamed).toEqual(sample.tokens);
  expect(sample.tokens).toHaveLength(12);

  // A text stop rule: rule and token texts are sent to the thread, and the sample ends after whole tokens.
  const [begins, second, third] = sample.tokens as [number, number, number];
  const texts = Array.from({ length: 400 }, (_, id) =>
    id === begins ? "ANSWER: 5" : id === third ? "\nResult:" : " and",
  );
  const rule = { begin: /^ANSWER:/, before: /^Result:/, oneLine: /^DESCRIBE:/, statement: /^QUERY:/ };
  const stopped = await engine.sample({ ...request, stop: { rule, texts } });
  expect(stopped).toMatchObject({ tokens: [begins, second], finish_reason: "stop" });
  expect(stopped.logprobs).toEqual(sample.logprobs.slice(0, 2));

  let turns = 0;
  const count = () => {
    turns++;
    immediate = setImmediate(count);
  };
  let immediate = setImmediate(count);
  await engine.forwardBackward(batch, loss);
  clearImmediate(immediate);
  expect(turns).toBeGreaterThan(0); // an engine in this thread would block the event loop
  await engine.optimStep({ learning_rate: 1e-3 });
  await engine.saveState(join(scratch, "state"));
  const step = async () => {
    const { loss: value } = await engine.forwardBackward(batch, loss);
    await engine.optimStep({ learning_rate: 1e-3 });
    return value;
  };
  const first = [await step(), await step()];
  await engine.loadState(join(scratch, "state"));
  expect([await step(), await step()]).toEqual(first);
  expect(first[1]).toBeLessThan(first[0]!);

  await expect(engine.forwardBackward(batch, policy)).rejects.toThrow(
    /no such loss \(only cross_entropy\): policy; load the model with loadTrainableModel/,
  );
  await engine.close();
});

test("per-token advantages can be sent to the thread as any kind of array", async () => {
  const engine = await startTrainableEngine(folder, { threads: 1 });
  const lossOf = async (advantage: number | ArrayLike<number>) =>
    (await engine.forwardBackward([{ ...batch[0]!, advantage, old_logp: context.map(() => -6) }], policy)).loss;
  expect(await lossOf(new Float64Array(8).fill(0.5))).toBe(await lossOf(0.5));
  expect(await lossOf([0, 1, 1, 1, 1, 0, 0, 0])).not.toBe(await lossOf(1));
  await engine.close();
});

test("the package and its old sub-path load engines with the policy losses", () => {
  for (const entry of [root, before]) {
    expect(entry.startEngine).toBe(startTrainableEngine);
    expect(entry.computeAdvantages).toBe(root.computeAdvantages);
    expect(entry.POLICY_LOSSES).toHaveProperty("policy");
  }
});

test("errors arrive as they were thrown, and pending calls are rejected when the thread ends", async () => {
  await expect(startEngine(join(scratch, "nothing"))).rejects.toMatchObject({
    name: "ModelLoadError",
    code: "model_load",
  });
  const engine = await startEngine(folder, { threads: 1, trains: false });
  await expect(engine.sample({ ...request, prompt: [] })).rejects.toMatchObject({ name: "UsageError" });
  await expect(engine.forwardBackward(batch, loss)).rejects.toThrow(/sampling only/);
  const abort = new AbortController();
  const long = engine.sample({ ...request, max_new_tokens: 200, signal: abort.signal, onToken: () => abort.abort() });
  expect((await long).finish_reason).toBe("aborted");
  await engine.close();
  await expect(engine.sample(request)).rejects.toThrow();
});

test("a program that does not close its engine ends, after the calls that are under way", async () => {
  const program = join(scratch, "program.mjs");
  writeFileSync(
    program,
    `import { startEngine } from ${JSON.stringify(pathToFileURL(join(ROOT, "dist/lm/engine/index.node.js")).href)};
    const engine = await startEngine(${JSON.stringify(folder)}, { threads: 1 });
    void engine.sample(${JSON.stringify(request)}).then(({ tokens }) => console.log(tokens.length));`,
  );
  const { stdout } = await promisify(execFile)(process.execPath, [program]);
  expect(stdout).toBe("12\n");
});
