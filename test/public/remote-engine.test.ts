// A remote engine on our own Tinker server: the same training as on this machine, and nothing lost in between.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { loadBaseModel, type RunningTinkerServer, startTinkerServer } from "sqlenv/apps/tinker";
import { loadRemoteModel, startTrainableEngine } from "sqlenv/rl/node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TrainingPlace } from "../helpers/training-place.ts";

const LORA = { "--use-peft": "true", "--lora-r": 4, "--max-steps": 3, "--save-steps": 2 };

const place = await TrainingPlace.make();
let server: RunningTinkerServer;
beforeAll(async () => {
  const model = await loadBaseModel(place.model, { threads: 1 });
  server = await startTinkerServer(model, { port: 0, checkpoints: place.path("checkpoints") });
});
afterAll(async () => {
  await server.close();
  place.remove();
});

const remote = (lora = { rank: 4, seed: 7 }) => loadRemoteModel(place.model, { url: server.url, lora });

describe("a training on a server", () => {
  test("has the metrics, the episodes and the model of a local one, to the last bit", async () => {
    const local = await place.trainInside("local", LORA);
    expect(local.code, local.stderr).toBe(0);
    const ran = await place.trainInside("remote", { ...LORA, "--engine": server.url });
    expect(ran.code, ran.stderr).toBe(0);
    const [ours, theirs] = ["local", "remote"].map((run) => place.lines(run, "metrics.jsonl"));
    expect(theirs).toEqual(ours!.map(({ entropy: _, ...known }) => known)); // a server does not say the entropy
    expect(theirs!.at(-2)!["sampling/sampling_logp_difference/max"]).toBeLessThan(1e-5);
    expect(place.text("remote", "episodes.jsonl")).toBe(place.text("local", "episodes.jsonl"));
    for (const file of ["adapter/adapter_model.safetensors", "model/model.safetensors"])
      expect(readFileSync(place.path("remote", file)).equals(readFileSync(place.path("local", file))), file).toBe(true);
    expect(server.sessions).toBe(0);
  });

  test("is resumed from the server's checkpoint to the same result", async () => {
    const first = await place.trainInside("resumed", { ...LORA, "--engine": server.url, "--max-steps": 2 });
    expect(first.code, first.stderr).toBe(0);
    const state = JSON.parse(place.text("resumed", "checkpoints/step-2/remote.json"));
    expect(state).toMatchObject({ base_model: "model", steps: 2 });
    const { engine } = await loadRemoteModel(place.model, { url: server.url, lora: { rank: 4 } });
    await engine.loadState(place.path("resumed", "checkpoints/step-2"));
    const data = [{ tokens: [5, 9, 2, 7], weights: [0, 1, 1, 1] }];
    const [loaded] = await engine.logprobs(data);
    const trained = await startTrainableEngine(place.path("resumed", "model"), { trains: false });
    const [merged] = await trained.logprobs(data);
    for (const [i, value] of merged!.entries()) expect(loaded![i]).toBeCloseTo(value, 4);
    expect(await engine.optimStep({ learning_rate: 1e-3 })).toMatchObject({ step: 3 });
    await Promise.all([engine.close(), trained.close()]);
  });

  test("keeps its report where the server offers no download, and says where the adapters are", async () => {
    const proxy = createServer((incoming, outgoing) => {
      if (incoming.url!.endsWith("/archive")) return void outgoing.writeHead(404).end();
      const { method, headers, url: path } = incoming;
      const { port } = new URL(server.url);
      const passed = request({ port, path, method, headers }, (reply) => {
        outgoing.writeHead(reply.statusCode!, reply.headers);
        reply.pipe(outgoing);
      });
      incoming.pipe(passed);
    }).listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const ran = await place.trainInside("kept", { ...LORA, "--engine": url, "--max-steps": 1 });
    proxy.closeAllConnections();
    proxy.close();
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/saved the adapters but offers no download of them: tinker:.*copy them from the server/);
    expect(place.text("kept", "report.html")).toContain("</html>");
  });

  test("refuses settings that servers do not have, by name", async () => {
    for (const [flag, value] of [
      ["--beta", 0.1],
      ["--loss-type", "sapo"],
      ["--importance-sampling-level", "sequence"],
      ["--temperature", 0.8],
      ["--lora-alpha", 8],
      ["--sft-steps", 2],
    ] as const) {
      const ran = await place.trainInside("refused", { ...LORA, "--engine": server.url, [flag]: value });
      expect(ran.code).not.toBe(0);
      expect(ran.stderr).toContain(flag.slice(2).replaceAll("-", "_"));
    }
  });
});

describe("a remote engine", () => {
  const prompt = [5, 9, 2, 7, 7, 3, 11, 40];

  test("has 32 samples under way at once, each as a local engine samples it", async () => {
    const { engine } = await remote();
    const local = await startTrainableEngine(place.model, { lora: { r: 4, alpha: 32, seed: 7 }, threads: 1 });
    const keys = Array.from({ length: 32 }, (_, i) => ["test", i]);
    const ask = { prompt, max_new_tokens: 12, stop_ids: [2] };
    const samples = keys.map((key) => engine.sample({ ...ask, key }));
    expect(engine.remote.running).toBe(32);
    const expected = await Promise.all(keys.map((key) => local.sample({ ...ask, key })));
    const parts = ({ tokens, logprobs, finish_reason }: (typeof expected)[number]) => ({
      tokens,
      logprobs,
      finish_reason,
    });
    expect((await Promise.all(samples)).map(parts)).toEqual(expected.map(parts));
    expect(engine.remote.running).toBe(0);
    await Promise.all([engine.close(), local.close()]);
  });

  test("stops at a text rule, passes tokens on, and gives up a sample that is no longer wanted", async () => {
    const { engine } = await remote();
    const whole = await engine.sample({ prompt, max_new_tokens: 8, stop_ids: [], key: [1] });
    const [begins, second, third] = whole.tokens as [number, number, number];
    const texts = Array.from({ length: 512 }, (_, id) =>
      id === begins ? "ANSWER: 5" : id === third ? "\nResult:" : " and",
    );
    const rule = { begin: /^ANSWER:/, before: /^Result:/, oneLine: /^DESCRIBE:/, statement: /^QUERY:/ };
    const heard: number[] = [];
    const onToken = (token: number) => heard.push(token);
    const ask = { prompt, max_new_tokens: 8, stop_ids: [], key: [1], onToken };
    const stopped = await engine.sample({ ...ask, stop: { rule, texts } });
    expect(stopped).toMatchObject({ tokens: [begins, second], finish_reason: "stop" });
    expect(heard).toEqual([begins, second]);
    const aborted = await engine.sample({ ...ask, signal: AbortSignal.abort() });
    expect(aborted).toMatchObject({ tokens: [], finish_reason: "aborted" });
    await engine.close();
  });

  test("learns cross-entropy as a local engine does, in requests of any size and in both forms", async () => {
    const data = Array.from({ length: 5 }, (_, i) => ({
      tokens: [5, 9, 2, 7, 7, i + 3, 11, 40],
      weights: [0, 0, 1, 1, 0, 1, 0.5, 1],
    }));
    const spec = { loss: { type: "cross_entropy" } };
    const local = await startTrainableEngine(place.model, { lora: { r: 4, alpha: 32, seed: 7 }, threads: 1 });
    const expected = [await local.forwardBackward(data, spec)];
    await local.optimStep({ learning_rate: 0.01 });
    expected.push(await local.forwardBackward(data, spec));
    const { engine } = await remote();
    expect(await engine.forwardBackward(data, spec)).toMatchObject({
      loss: expected[0]!.loss,
      logprobs: expected[0]!.logprobs,
    });
    const step = await engine.optimStep({ learning_rate: 0.01 });
    expect(step).toMatchObject({ step: 1, skipped: false });
    await engine.sample({ prompt, max_new_tokens: 1, stop_ids: [], key: [1] }); // its reply is protobuf: so are requests from here on
    const second = await engine.forwardBackward(data, spec);
    expect(second.loss).toBe(expected[1]!.loss);
    for (const [i, row] of (await engine.logprobs(data)).entries())
      for (const [at, value] of row.entries())
        if (data[i]!.weights[at] !== 0) expect(value).toBeCloseTo(expected[1]!.logprobs[i]![at]!, 5);
    await Promise.all([engine.close(), local.close()]);
  });

  test("samples from the base model and from a saved adapter without training", async () => {
    const { engine } = await remote();
    await engine.forwardBackward([{ tokens: prompt, weights: prompt.map(() => 1) }], {
      loss: { type: "cross_entropy" },
    });
    await engine.optimStep({ learning_rate: 0.5 });
    await engine.saveAdapter(join(place.scratch, "downloaded"), place.model);
    const ask = { prompt, max_new_tokens: 12, stop_ids: [], key: [3] };
    const { tokens } = await engine.sample(ask);
    const config = JSON.parse(readFileSync(join(place.scratch, "downloaded/adapter_config.json"), "utf8"));
    expect(config).toMatchObject({ r: 4, lora_alpha: 32, base_model_name_or_path: place.model });
    const merged = await startTrainableEngine(place.model, {
      trains: false,
      adapter: join(place.scratch, "downloaded"),
      threads: 1,
    });
    expect((await merged.sample(ask)).tokens).toEqual(tokens);
    const { engine: base } = await loadRemoteModel(place.model, { url: server.url });
    expect((await base.sample(ask)).tokens).not.toEqual(tokens);
    await expect(base.optimStep({ learning_rate: 1 })).rejects.toThrow("for sampling only");
    await Promise.all([engine.close(), merged.close(), base.close()]);
  });
});
