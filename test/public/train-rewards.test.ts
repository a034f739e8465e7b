// User-defined reward functions from a TypeScript file: scored beside the built-in three, and named when they fail.
import { existsSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { ALL, QUICK, some } from "../helpers/cases.ts";
import { ended, sqlenv, start } from "../helpers/cli-process.ts";
import { signalAt, TrainingPlace } from "../helpers/training-place.ts";

const place = await TrainingPlace.make();
afterAll(() => place.remove());

/** Writes a reward file. */
function rewards(name: string, code: string): string {
  const file = place.path(`${name}.ts`);
  writeFileSync(file, code);
  return file;
}

/** Two functions with types; the first throws at a step. */
const typed = (broken_at: number) => `
interface Message { readonly role: string; readonly content: string }
type Completions = readonly (readonly Message[])[];
interface Context { readonly step: number; log_metric(name: string, value: number): void; readonly prompts: readonly string[] }

export function rewardBrevity(completions: Completions, { step, log_metric, prompts }: Context): number[] {
  if (step === ${broken_at}) throw new Error("no such\\nluck");
  log_metric("prompts/longest", Math.max(...prompts.map((prompt) => prompt.length)));
  return completions.map((messages) => {
    const said = messages.filter(({ role }) => role === "assistant").map(({ content }) => content);
    return -said.join("").length / (100 as number);
  });
}

/** Scores every other episode. */
export const evenOnly = async (completions: Completions): Promise<(number | null)[]> => {
  await new Promise<void>((resolve) => setImmediate(resolve));
  return completions.map((_, i) => (i % 2 === 0 ? i : null));
};

export const NOT_A_FUNCTION: number = 3;
`;
const NEVER = 0;
/** The functions of a file come after the three, in the order of their names. */
const WEIGHTS = { "--reward-weights": "1,1,1,2,0.5", "--max-steps": 3, "--save-steps": 100 };

/** Trains with functions that work. */
async function trainTyped(): Promise<void> {
  const settings = { ...WEIGHTS, "--reward-funcs": rewards("typed", typed(NEVER)) };
  const { code, stderr } = await place.trainInside("typed", settings);
  expect(code, stderr).toBe(0);
}

test("typed, async and partial reward functions are each logged under their snake_case name", async () => {
  await trainTyped();
  const lines = place.lines("typed", "metrics.jsonl").filter(({ loss }) => loss !== undefined);
  const episodes = place.lines("typed", "episodes.jsonl");
  expect(lines).toHaveLength(3);
  for (const { step, ...line } of lines) {
    const those = episodes.filter((episode) => episode.step === step);
    expect(those.map((episode) => episode.rewards.even_only)).toEqual([0, null, 2, null, 4, null]);
    expect(line["rewards/even_only/mean"]).toBeCloseTo(2, 9);
    expect(line["rewards/even_only/std"]).toBeCloseTo(2, 9);
    const brevity = those.reduce((sum, episode) => sum + episode.rewards.reward_brevity, 0);
    expect(brevity).toBeLessThan(0);
    expect(line["rewards/reward_brevity/mean"]).toBeCloseTo(brevity / 6, 9);
    for (const { rewards, total_reward } of those) {
      const { reward_correctness, reward_progress, reward_operational, reward_brevity, even_only } = rewards;
      const own = reward_correctness + reward_progress + reward_operational;
      expect(total_reward).toBeCloseTo(own + 2 * (even_only ?? 0) + 0.5 * reward_brevity, 9);
    }
    expect(line["prompts/longest"]).toBe(Math.max(...those.map(({ question }) => question.length)));
  }
});

test.skipIf(!ALL)(
  "a reward function that throws keeps what was learned; once fixed, the run resumes as if it never had",
  async () => {
    const failed = await place.train("failed", { ...WEIGHTS, "--reward-funcs": rewards("mended", typed(3)) }, "--json");
    expect({ code: failed.code, stdout: failed.stdout }).toEqual({ code: 1, stdout: "" });
    expect(failed.stderr).toMatch(
      /^error: reward function rewardBrevity threw: no such luck; give one number, or null for no opinion, .*reward_failed\)$/m,
    );
    expect(place.files("failed")).toContain("checkpoints/step-2");
    rewards("mended", typed(NEVER));
    const resume = ["train", "--resume", place.path("failed")]; // the run records its reward file
    const refused = await sqlenv(resume);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(
      /begun with other inputs; what has changed is: the reward file \(.*mended\.ts\); .*--accept-changes/,
    );
    const resumed = await sqlenv([...resume, "--accept-changes"]);
    expect(resumed.code, resumed.stderr).toBe(0);
    for (const log of ["metrics.jsonl", "episodes.jsonl"])
      expect(place.text("failed", log)).toBe(place.text("typed", log));
  },
);

describe.runIf(QUICK).concurrent("refused, with the function's name", () => {
  test.each([
    ["too short", "export const short = () => [1];", /function short gave another number .* 6 completions .*: 1;/],
    ["no numbers", 'export const words = (c: unknown[]) => c.map(() => "good");', /function words gave: good;/],
  ])("%s", async (name, code, message) => {
    const ran = await place.trainInside(name, { "--reward-funcs": rewards(name, code) }, "--json");
    expect({ code: ran.code, stdout: ran.stdout }, ran.stderr).toEqual({ code: 1, stdout: "" });
    expect(ran.stderr).toMatch(message);
  });

  test.each([
    ["no file", null, /no such reward file: .*nothing\.ts/],
    ["no TypeScript", "export function (", /the reward file cannot be loaded: .*: \/.*\.ts/],
    ["a name taken", "export const rewardProgress = () => [];", /the same name: reward_progress; rename one/],
    [
      "fewer weights",
      "export const more = () => [];",
      /4 reward functions \(.*reward_operational, more\) need as many reward_weights, not: 3/,
    ],
  ])("before anything is made: %s", async (name, code, message) => {
    const file = code === null ? "nothing.ts" : rewards(name, code);
    const ran = await place.trainInside(name, { "--reward-funcs": file, "--reward-weights": "1,1,1" }, "--json");
    expect({ code: ran.code, stdout: ran.stdout }, ran.stderr).toEqual({ code: 2, stdout: "" });
    expect(ran.stderr).toMatch(message);
    expect(existsSync(place.path(name))).toBe(false);
  });
});

describe.concurrent("a reward function that misbehaves in the third step loses no progress", () => {
  /** Trains with a function that runs this code in the third step, and reports when. */
  const misbehaving = (name: string, what: string, settings = {}) => {
    const code = `
      import { writeFileSync } from "node:fs";
      export const own = (completions: unknown[], { step }: { step: number }) => {
        if (step === 3) {
          writeFileSync(${JSON.stringify(place.path(`${name}.reached`))}, "");
          ${what}
        }
        return completions.map(() => 0);
      };`;
    const args = { "--max-steps": 6, "--save-steps": 100, "--reward-funcs": rewards(name, code), ...settings };
    return start(place.args(name, args));
  };
  const checkpoints = (run: string) => readdirSync(place.path(run, "checkpoints"));

  const faults: [string, string, string, object][] = [
    [
      "leaves a rejected promise",
      'void Promise.reject(new Error("left behind"));',
      "own failed in a stray promise or timer: left behind",
      {},
    ],
    ["exits", "process.exit(0);", "own ended its thread, as process.exit(0) does", {}],
    [
      "never answers in time",
      "return new Promise(() => {});",
      "own took longer than reward_timeout allows: 1 seconds",
      { "--reward-timeout": 1 },
    ],
  ];
  test.each(some(1, faults))("%s: is named, and progress is saved", async (name, what, message, settings) => {
    const { code, stderr } = await ended(misbehaving(name, what, settings));
    expect(code).toBe(1);
    expect(stderr).toMatch(
      new RegExp(`^error: reward function ${message.replace(/[()]/g, "\\$&")}.*\\(reward_failed\\)$`, "m"),
    );
    const reached = place.lines(name, "timings.jsonl").at(-1)!.step;
    expect(checkpoints(name)).toEqual([`step-${reached}`]);
    expect(reached).toBeGreaterThanOrEqual(2);
  });

  const endless: [string, string][] = [
    ["loops for ever", "for (;;);"],
    ["waits for ever", "return new Promise(() => {});"],
  ];
  test.each(some(1, endless))("%s: a stop signal works, and progress is saved", async (name, what) => {
    const child = misbehaving(name, what);
    const end = ended(child);
    expect(await signalAt(child, name, () => existsSync(place.path(`${name}.reached`)), "SIGTERM")).toBe(true);
    expect((await end).code).toBe(143);
    expect(checkpoints(name)).toEqual(["step-2"]);
  });
});

test.runIf(QUICK)(
  "types are stripped in memory: nothing is written next to the file, and relative imports work",
  async () => {
    const folder = mkdtempSync(place.path("neighbours-"));
    writeFileSync(join(folder, "helper.ts"), "export const half: number = 0.5;\n");
    writeFileSync(
      join(folder, "rewards.ts"),
      `import { readdirSync } from "node:fs";
     import { half } from "./helper.ts";
     const there: string[] = readdirSync(new URL(".", import.meta.url)).sort();
     if (there.join() !== "helper.ts,rewards.ts") throw new Error("there is also " + there.join());
     export const neighbour = (completions: unknown[]): number[] => completions.map(() => half);`,
    );
    const ran = await place.trainInside("neighbours", { "--reward-funcs": join(folder, "rewards.ts") }, "--dry-run");
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stdout).toContain("neighbour");
  },
);
