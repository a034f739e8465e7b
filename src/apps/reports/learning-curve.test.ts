import { expect, test } from "vitest";
import { metrics, RESULT } from "../../../test/helpers/run-records.ts";
import { learningCurve } from "./learning-curve.ts";
import { svgToPng } from "./png.node.ts";

test("shows the reward, its components, success with bands, and the random baseline", () => {
  const svg = learningCurve(metrics(), { title: "lamps", subtitle: "40 steps", random: RESULT.random });
  for (const label of [
    "reward 0.9",
    "correctness 0.9",
    "progress 0.4",
    "operational 0.06",
    "greedy 80 %",
    "sampled 80 %",
    "random 1 %",
  ])
    expect(svg).toContain(label);
  expect(svg.match(/fill-opacity="0.14"/g)).toHaveLength(4); // a band for each of seen, unseen × greedy, sampled
  expect(svg).toContain("prefers-color-scheme:dark");
  expect(svg).not.toMatch(/https?:(?!\/\/www\.w3\.org\/2000\/svg)|<script|@import|url\(/);
  expect(learningCurve(metrics(), { title: "lamps", subtitle: "40 steps", random: RESULT.random })).toBe(svg);
});

test("custom rewards are drawn under their escaped names", () => {
  const svg = learningCurve([
    { step: 1, reward: 1, "rewards/short_answers/mean": 0.5, 'rewards/<b x="1">/mean': 0.2 },
    { step: 2, reward: 1, "rewards/short_answers/mean": 0.75 },
  ]);
  expect(svg).toContain("short answers 0.75");
  expect(svg).not.toContain("<b");
});

test("a run without data has a curve too", () => {
  expect(learningCurve([])).toContain("nothing logged yet");
  expect(learningCurve([{ step: 1, reward: 0.1 }])).toContain("no evaluation yet");
  const holes = [{ step: 1, reward: null, "eval_seen/greedy/success_rate": null }] as unknown as { step: number }[];
  expect(learningCurve(holes)).not.toMatch(/NaN|null/);
});

test("the PNG has twice the size, and its text needs no system font", async () => {
  const png = await svgToPng(learningCurve(metrics()));
  const view = new DataView(png.buffer, png.byteOffset);
  expect([...png.subarray(0, 4)]).toEqual([0x89, 0x50, 0x4e, 0x47]);
  expect([view.getUint32(16), view.getUint32(20)]).toEqual([1800, 1180]);
  const drawn = async (text: string) =>
    (await svgToPng(`<svg xmlns="http://www.w3.org/2000/svg" width="60" height="20"><text y="15">${text}</text></svg>`))
      .length;
  const sizes = [await drawn(""), await drawn("i"), await drawn("W−8 %")];
  expect(sizes[1]).toBeGreaterThan(sizes[0]!);
  expect(sizes[2]).toBeGreaterThan(sizes[1]!);
});
