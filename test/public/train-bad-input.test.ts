// `sqlenv train` with bad input: one line with what is wrong, the value and a remedy; nothing is lost.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Ran, sqlenv, sqlenvInside } from "../helpers/cli-process.ts";
import { TrainingPlace } from "../helpers/training-place.ts";

const place = await TrainingPlace.make();
afterAll(() => place.remove());

/** One line on stderr, nothing on stdout (with --json), and this exit code. */
function expectRefused({ code, stdout, stderr }: Ran, expected: number, message: RegExp): void {
  expect({ code, stdout }, stderr).toEqual({ code: expected, stdout: "" });
  const errors = stderr.split("\n").filter((line) => line.startsWith("error: "));
  expect(errors).toHaveLength(1);
  expect(errors[0]).toMatch(message);
}

/** Makes the MLP of the tiny model this wide; the weights become a sparse file, of which only the header is read. */
function widen(folder: string, width: number): void {
  const [config, weights] = [join(folder, "config.json"), join(folder, "model.safetensors")];
  const facts = JSON.parse(readFileSync(config, "utf8"));
  const hidden = 8192;
  writeFileSync(config, JSON.stringify({ ...facts, hidden_size: hidden, intermediate_size: width }));
  const file = readFileSync(weights);
  const header = JSON.parse(file.toString("utf8", 8, 8 + Number(file.readBigUInt64LE(0))));
  let end = 0;
  for (const [name, tensor] of Object.entries<{ dtype: string; shape: number[]; data_offsets: number[] }>(header)) {
    if (name === "__metadata__") continue;
    const [rows, columns] = tensor.shape as [number, number?];
    const { intermediate_size: narrow, hidden_size: small } = facts;
    const isWide = /(o_proj|down_proj)\.weight$/.test(name) || columns === undefined;
    const grown = (size: number, isHidden: boolean) => (size === narrow ? width : isHidden ? hidden : size);
    if (!/[qk]_norm/.test(name))
      tensor.shape =
        columns === undefined ? [hidden] : [grown(rows, isWide && rows === small), grown(columns, !isWide)];
    const size = tensor.shape.reduce((a, b) => a * b) * (tensor.dtype === "F32" ? 4 : 2);
    tensor.data_offsets = [end, end + size];
    end += size;
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(weights, Buffer.concat([length, text]));
  truncateSync(weights, 8 + text.length + end);
}

describe.concurrent("settings", () => {
  test.each<[Readonly<Record<string, string | number>>, RegExp]>([
    [{ "--lerning-rate": 1 }, /unknown option '--lerning-rate'; did you mean --learning-rate\?/],
    [{ "--learning-rate": "fast" }, /learning_rate takes a number: fast; for example/],
    [{ "--num-generations": 4 }, /6 episodes .* groups of num_generations: 4; choose .* divisors of 6/],
    [
      { "--per-device-train-batch-size": 60 },
      /asks 20 questions, and there are only: 5; lower per_device.*, for example to 15, 1 and null/,
    ],
    [
      { "--max-context-tokens": 4096 },
      /above the window of 1024 that the engine computes .*: 4096; give --max-context-tokens 1024/,
    ],
    [
      { "--sft-steps": 1, "--sft-max-context-tokens": 200 },
      /no SFT episode fits sft_max_context_tokens: 200; the shortest of 64 has \d+ tokens: raise/,
    ],
    [
      { "--sft-steps": 1, "--sft-max-context-tokens": 4096 },
      /sft_max_context_tokens is above the window of 1024 .*: 4096; give --sft-max-context-tokens 1024/,
    ],
    [
      { "--sft-steps": 1, "--sft-database-share": 0.9 },
      /takes all 2 training databases of small and leaves none to GRPO: 0\.9; give less than 0\.75, or --sft-overlap/,
    ],
    [
      { "--reward-weights": "1,2" },
      /3 reward functions \(reward_correctness, .*\) need as many reward_weights, not: 2; give one/,
    ],
  ])("%j is refused, and the folder's name stays free", async (settings, message) => {
    const run = Object.keys(settings).join();
    expectRefused(await place.trainInside(run, settings, "--json"), 2, message);
    expect(existsSync(place.path(run))).toBe(false);
  });

  test("a bad value in a config file is refused like a flag", async () => {
    const file = place.path("misspelt.yaml");
    writeFileSync(file, "preset: starter\nlerning_rate: 1\n");
    const misspelt = await sqlenv(["train", "--config", file, "--json"]);
    expectRefused(misspelt, 2, /no such setting: lerning_rate; did you mean learning_rate\?/);
  });
});

test("an SFT context that is too small is found before anything is played", async () => {
  const settings = { "--sft-steps": 1, "--sft-max-context-tokens": 200 };
  const { stdout, stderr } = await place.trainInside("small-context", settings);
  expect(stderr).toMatch(/no SFT episode fits/);
  expect(stdout).not.toMatch(/evaluating/);
});

describe.concurrent("files", () => {
  test("an existing output folder or file is not touched", async () => {
    const before = readdirSync(place.model);
    const there = await sqlenvInside([...place.args("model"), "--json"]);
    expectRefused(there, 2, /the output folder already exists: .*model; continue it with --resume .*, or name another/);
    expect(readdirSync(place.model)).toEqual(before);
    const file = await sqlenvInside([...place.args("transcripts.jsonl"), "--json"]);
    expectRefused(file, 2, /the output folder is a file: .*transcripts\.jsonl; name another/);
  });

  test("a folder that cannot be created is named", async () => {
    const run = await sqlenvInside([...place.args("transcripts.jsonl/run"), "--json"]);
    expectRefused(run, 1, /cannot make the run's folder: .*; make its place writable, or name another/);
  });

  test("a missing or invalid model is named, and no run folder is left", async () => {
    const none = await place.trainInside("refused-1", { "--model-name": "nowhere" }, "--json");
    expectRefused(
      none,
      1,
      /no such model folder or GGUF file, .*: nowhere; give the path of a folder or a GGUF file, .* or a name/,
    );
    const other = await place.trainInside("refused-1", { "--model-name": place.data }, "--json");
    expectRefused(other, 1, /cannot be read .*small\/config\.json; .*Hugging Face layout/);
    expect(existsSync(place.path("refused-1"))).toBe(false);
  });

  test("a model that does not fit into memory is refused before SFT, and no run folder is left", async () => {
    const huge = place.path("huge");
    cpSync(place.model, huge, { recursive: true });
    widen(huge, 65_536);
    const settings = { "--model-name": huge, "--sft-steps": 1, "--sft-max-context-tokens": 512, "--device": "cpu" };
    const ran = await place.trainInside("refused-huge", settings, "--json");
    expectRefused(ran, 1, /huge does not fit the CPU: training needs: [\d.]+ GiB of [\d.]+ GiB/);
    expect(existsSync(place.path("refused-huge"))).toBe(false);
  });

  test("an existing empty output folder is kept when the model fails to load", async () => {
    mkdirSync(place.path("empty"));
    const ran = await place.trainInside("empty", { "--model-name": place.path("nowhere") }, "--json");
    expect(ran.code).not.toBe(0);
    expect(readdirSync(place.path("empty"))).toEqual([]);
  });

  test("missing, empty or fully filtered questions are named by their path", async () => {
    const missing = await place.trainInside("refused-2", { "--questions-path": place.path("nothing") }, "--json");
    expectRefused(missing, 1, /no such file or folder: \/.*\/nothing; check the path/);
    const empty = place.path("empty");
    cpSync(place.data, empty, { recursive: true });
    writeFileSync(place.path("empty", "questions", "questions_train.json"), "[]");
    const none = await place.trainInside("refused-2", { "--questions-path": empty }, "--json");
    expectRefused(none, 1, /no questions: \/.*\/empty\/questions\/questions_train\.json; put at least one/);
    const hard = await place.trainInside("refused-2", { "--difficulty-filter": "hard" }, "--json");
    expectRefused(hard, 1, /none of the 5 training questions passes in: small; difficulty_filter is hard/);
    expect(existsSync(place.path("refused-2"))).toBe(false);
  });
});

describe.concurrent("--resume", () => {
  /** Resumes a copy of a finished run after modifying it. */
  const resume = async (run: string, happen: () => void = () => {}, ...args: readonly string[]) => {
    if (!existsSync(place.path(run))) cpSync(place.path("whole"), place.path(run), { recursive: true });
    happen();
    return sqlenvInside(["train", "--resume", place.path(run), "--json", ...args]);
  };
  const WHOLE = ["metrics.jsonl", "episodes.jsonl", "checkpoints/step-4/engine.safetensors"];
  beforeAll(async () => {
    const { code, stderr } = await place.trainInside("whole");
    expect(code, stderr).toBe(0);
  }, 60_000);

  test("of a missing path, a file or another folder creates nothing", async () => {
    for (const name of ["nothing", "transcripts.jsonl", "small"])
      expectRefused(
        await sqlenvInside(["train", "--resume", place.path(name), "--json"]),
        2,
        new RegExp(`no run to resume: .*${name}; name the folder of a training`),
      );
    expect(existsSync(place.path("nothing"))).toBe(false);
    expect(existsSync(place.path("small", "checkpoints"))).toBe(false);
  });

  test("with other settings says which differ, and changes nothing", async () => {
    const other = await resume("other", () => {}, "--seed", "7", "--answer-last", "--beta", "0.5");
    expectRefused(
      other,
      2,
      /begun with other settings: answer_last false, now true; seed 42, now 7; beta 0, now 0\.5; leave them as they were, or/,
    );
    const preset = await resume("other", () => {}, "--preset", "starter");
    expectRefused(preset, 2, /begun with other settings: model_name "\/.*", now "starter"/);
    for (const file of WHOLE) expect(place.text("other", file)).toBe(place.text("whole", file));
  });

  test("from a checkpoint cut short names it; without it, the one before is as good", async () => {
    const cut = await resume("cut", () =>
      truncateSync(place.path("cut", "checkpoints/step-4/engine.safetensors"), 1000),
    );
    expectRefused(
      cut,
      1,
      /damaged: .*engine\.safetensors: the file is cut off: .*step-4; delete it to resume from the one before it/,
    );
    const again = await resume("cut", () => rmSync(place.path("cut", "checkpoints/step-4"), { recursive: true }));
    expect(again.code, again.stderr).toBe(0);
    for (const file of WHOLE)
      expect(readFileSync(place.path("cut", file)).equals(readFileSync(place.path("whole", file))), file).toBe(true);
  });

  test.each([
    ["trainer.json", '{"state": {}}', /damaged: .*trainer\.json; delete .*step-4 to resume from the one before it/],
    ["engine.json", '{"step"', /damaged: .*engine\.json: .*step-4; delete it to resume from the one before it/],
  ])("from a damaged %s (%j) says what to delete, and loses no step", async (file, text, message) => {
    const run = `damaged ${file} ${text.length}`;
    const damaged = await resume(run, () => writeFileSync(place.path(run, "checkpoints/step-4", file), text));
    expectRefused(damaged, 1, message);
    const steps = (of: string) => place.lines(of, "metrics.jsonl").filter(({ loss }) => loss !== undefined);
    expect(steps(run)).toEqual(steps("whole"));
  });

  test("refuses a log shorter than the checkpoint records, and does not touch the others", async () => {
    const ran = await resume("short", () => truncateSync(place.path("short", "metrics.jsonl"), 100));
    expectRefused(
      ran,
      2,
      /metrics\.jsonl is shorter than it was at checkpoint step-4: 100 of \d+ bytes; restore it, or start/,
    );
    expect(place.text("short", "episodes.jsonl")).toBe(place.text("whole", "episodes.jsonl"));
  });
});
