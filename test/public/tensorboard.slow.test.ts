// Event files of `--report-to tensorboard`, read back by the real TensorBoard.
// Needs a Python with it: SQLENV_PYTHON or python3; without one the test is skipped with a message.
import { execFileSync } from "node:child_process";
import { tensorBoard } from "sqlenv/rl/node";
import { afterAll, describe, expect, test } from "vitest";
import { without } from "../helpers/needs.ts";
import { TrainingPlace } from "../helpers/training-place.ts";

const python = process.env.SQLENV_PYTHON ?? "python3";
const READ = `
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
`;

type Scalars = Readonly<Record<string, readonly (readonly [step: number, value: number])[]>>;

function hasTensorBoard(): boolean {
  try {
    execFileSync(python, ["-c", "import tensorboard"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const isHere = hasTensorBoard();
const note = without("tensorboard", isHere, "set SQLENV_PYTHON to a Python that has it");

describe.skipIf(!isHere)(`--report-to tensorboard${note}`, async () => {
  const place = isHere ? await TrainingPlace.make() : null;
  afterAll(() => place?.remove());
  const read = (folder: string): Scalars =>
    JSON.parse(execFileSync(python, ["-c", READ, folder], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));

  test("has every number of metrics.jsonl, and a resumed run replaces the steps it repeats", async () => {
    const ran = await place!.train("one", { "--eval-steps": 2, "--eval-episodes": 2, "--report-to": "tensorboard" });
    expect(ran.code, ran.stderr).toBe(0);
    const folder = place!.path("one", "tensorboard");
    const scalars = read(folder);
    for (const { step, ...line } of place!.lines("one", "metrics.jsonl") as { step: number }[])
      for (const [name, value] of Object.entries(line as Record<string, number>)) {
        const tag = name.startsWith("eval_") ? `eval/${name.slice(5)}` : `train/${name}`;
        const found = scalars[tag]?.filter(([at]) => at === step).map(([, number]) => number);
        expect([tag, found?.some((number) => Math.abs(number - value) <= 1e-6 * Math.abs(value))]).toEqual([tag, true]);
      }
    expect(scalars["train/reward"]).toHaveLength(4);

    const view = { state: { step: 3 } } as never;
    await tensorBoard(folder).on_log!(view, { step: 3, reward: 7 });
    expect(read(folder)["train/reward"]!.map(([step]) => step)).toEqual([1, 2, 3]);
    expect(read(folder)["train/reward"]!.at(-1)).toEqual([3, 7]);
  });
});
