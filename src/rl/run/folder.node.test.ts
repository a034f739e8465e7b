import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RunFolder } from "./folder.node.ts";
import type { TrainerState } from "./store.ts";

const NOBODY = 65_534; // the user without rights, on Linux

let folder: string;
let run: RunFolder;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "sqlenv-store-")), "run");
  run = new RunFolder(folder);
});
afterEach(() => rmSync(join(folder, ".."), { recursive: true, force: true }));

const at = (step: number): TrainerState => ({
  ...{ step, batches: step, episodes: 6 * step, tokens: 100 * step, elapsed: step / 2, evaluated: 0 },
  ...{ since_log: { loss: [0.5, 2] }, warned: ["truncated"], streaks: { repeats: 2 } },
  queue: { position: 7 * step, outcomes: { "q-1": [0, 2, 8] } },
});
const weights = (text: string) => async (dir: string) => writeFileSync(join(dir, "engine.safetensors"), text);
const failing = (code: string) => async (dir: string) => {
  await weights("half")(dir);
  throw Object.assign(new Error(`${code}: it went wrong`), { code });
};
const checkpoints = () => readdirSync(join(folder, "checkpoints")).sort();
const read = (file: string) => readFileSync(join(folder, file), "utf8");

describe("logs and files", () => {
  test("records become lines, in order", () => {
    run.append("metrics.jsonl", { step: 1 });
    run.append("metrics.jsonl", { step: 2, text: "two\nlines" });
    expect(read("metrics.jsonl")).toBe('{"step":1}\n{"step":2,"text":"two\\nlines"}\n');
  });

  test("records given together become lines in one write", () => {
    run.append("episodes.jsonl", { step: 1 }, { step: 2 }, { step: 3 });
    run.append("episodes.jsonl");
    expect(read("episodes.jsonl")).toBe('{"step":1}\n{"step":2}\n{"step":3}\n');
  });

  test("a file is replaced whole; one that is not there is null", () => {
    expect(run.read("results.json")).toBeNull();
    run.write("results.json", "old");
    run.write("results.json", "new");
    expect(run.read("results.json")).toBe("new");
    expect(readdirSync(folder).sort()).toEqual(["checkpoints", "results.json"]);
  });

  test("a write that fails names the file and the folder, and leaves the old content", () => {
    run.write("results.json", "old");
    expect(() => run.write("no/such/folder.json", "new")).toThrow(/cannot write no\/such\/folder\.json: ENOENT.*run/);
    expect(run.read("results.json")).toBe("old");
  });
});

describe("checkpoints", () => {
  test("there is none at first; then the newest counts, by number and not by name", async () => {
    expect(run.newest()).toBeNull();
    for (const step of [2, 9, 10]) await run.checkpoint(at(step), weights(`of ${step}`), 3);
    expect(run.newest()).toEqual({ state: at(10), dir: join(folder, "checkpoints", "step-10") });
    expect(new RunFolder(folder).newest()).toEqual(run.newest());
  });

  test("only the newest are kept", async () => {
    for (const step of [1, 2, 3, 4]) await run.checkpoint(at(step), weights(`of ${step}`), 2);
    expect(checkpoints()).toEqual(["step-3", "step-4"]);
  });

  test.each([
    ["ENOSPC", /cannot save checkpoint step-2: ENOSPC.*; free some space, then resume: the checkpoint before is whole/],
    ["EACCES", /cannot save checkpoint step-2: EACCES.*; make the folder writable, then resume/],
  ])("%s while saving keeps the one before, whole", async (code, message) => {
    await run.checkpoint(at(1), weights("of 1"), 1);
    await expect(run.checkpoint(at(2), failing(code), 1)).rejects.toThrow(message);
    expect(checkpoints()).toEqual(["step-1"]);
    expect(run.newest()!.state).toEqual(at(1));
    expect(read("checkpoints/step-1/engine.safetensors")).toBe("of 1");
    await run.checkpoint(at(2), weights("of 2"), 1);
    expect(checkpoints()).toEqual(["step-2"]);
  });

  test("a folder that became read-only keeps what it has", async () => {
    await run.checkpoint(at(1), weights("of 1"), 2);
    const isRoot = process.geteuid?.() === 0; // whom no folder refuses anything
    for (const above of [join(folder, ".."), folder]) chmodSync(above, 0o755);
    chmodSync(join(folder, "checkpoints"), 0o555);
    if (isRoot) process.seteuid!(NOBODY);
    try {
      await expect(run.checkpoint(at(2), weights("of 2"), 2)).rejects.toThrow(/make the folder writable, then resume/);
    } finally {
      if (isRoot) process.seteuid!(0);
    }
    chmodSync(join(folder, "checkpoints"), 0o700);
    expect(checkpoints()).toEqual(["step-1"]);
  });

  test("one that a killed process left incomplete does not count, and is written again", async () => {
    await run.checkpoint(at(1), weights("of 1"), 2);
    const aside = join(folder, "checkpoints", ".step-2");
    new RunFolder(aside); // anything half-written
    expect(run.newest()!.state.step).toBe(1);
    await run.checkpoint(at(2), weights("of 2"), 2);
    expect(checkpoints()).toEqual(["step-1", "step-2"]);
    expect(readdirSync(join(folder, "checkpoints", "step-2")).sort()).toEqual(["engine.safetensors", "trainer.json"]);
  });

  test.each(["", "{", "{}", '{"state":{"step":1},"logs":{}}', "[]"])(
    "a trainer.json that holds %j says what to delete",
    async (text) => {
      await run.checkpoint(at(1), weights("of 1"), 2);
      await run.checkpoint(at(2), weights("of 2"), 2);
      run.append("metrics.jsonl", { step: 2 });
      writeFileSync(join(folder, "checkpoints", "step-2", "trainer.json"), text);
      const message = /checkpoint is damaged: .*trainer\.json; delete .*step-2 to resume from the one before it/s;
      expect(() => run.newest()).toThrow(message);
      expect(() => run.rewind()).toThrow(message);
      expect(read("metrics.jsonl")).toBe('{"step":2}\n');
      rmSync(join(folder, "checkpoints", "step-2"), { recursive: true });
      expect(run.newest()!.state).toEqual(at(1));
    },
  );
});

describe("rewind", () => {
  const write = (step: number) => {
    run.append("metrics.jsonl", { step });
    run.append("episodes.jsonl", { step, text: "…" });
  };

  test("cuts every log back to the newest checkpoint, half a line too", async () => {
    write(1);
    await run.checkpoint(at(1), weights(""), 2);
    write(2);
    run.append("warnings.jsonl", { step: 2 });
    writeFileSync(join(folder, "metrics.jsonl"), `${read("metrics.jsonl")}{"step":3,"lo`);
    run.rewind();
    expect(read("metrics.jsonl")).toBe('{"step":1}\n');
    expect(read("episodes.jsonl")).toBe('{"step":1,"text":"…"}\n');
    expect(read("warnings.jsonl")).toBe("");
    expect(existsSync(join(folder, "timings.jsonl"))).toBe(false);
  });

  test("removes what a killed process was writing, and nothing else", async () => {
    const aside = [".results.json.part", ".model-a1B2c3", "checkpoints/.step-7"];
    for (const name of [...aside, ".gitignore", "notes.part"]) writeFileSync(join(folder, name), "");
    run.rewind();
    expect(readdirSync(folder).sort()).toEqual([".gitignore", "checkpoints", "notes.part"]);
    expect(checkpoints()).toEqual([]);
  });

  test("without a checkpoint cuts them to nothing", () => {
    write(1);
    run.rewind();
    expect(read("metrics.jsonl") + read("episodes.jsonl")).toBe("");
  });

  test.each(["shorter", "gone"])("refuses when a log is %s, and cuts none", async (how) => {
    write(1);
    write(2);
    await run.checkpoint(at(2), weights(""), 2);
    write(3);
    const [log, other] = [join(folder, "episodes.jsonl"), read("metrics.jsonl")];
    if (how === "gone") rmSync(log);
    else truncateSync(log, 5);
    expect(() => run.rewind()).toThrow(/episodes\.jsonl is shorter than it was at checkpoint step-2: [05] of 48 bytes/);
    expect(read("metrics.jsonl")).toBe(other);
  });
});

test("a folder that cannot be made says where, and what else to do", () => {
  writeFileSync(join(folder, "file"), "");
  expect(() => new RunFolder(join(folder, "file", "run"))).toThrow(
    /cannot make the run's folder: ENOTDIR.*file\/run; make its place writable, or name another/,
  );
});
