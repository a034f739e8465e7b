// Plots of a running training: from no data to two curves.
import { expect, test } from "vitest";
import { livePlots } from "./live-plots.ts";

test("before the first step both plots show a placeholder", () => {
  const svg = livePlots({ rewards: [], success: [], total_steps: 0 });
  expect(svg).toMatch(/^<svg [^>]*width="900"/);
  expect(svg).toContain("no step yet");
  expect(svg).toContain("not measured yet");
});

test("reward on the left, training and evaluation success on the right, both up to the last step", () => {
  const svg = livePlots({
    rewards: [10, 20].map((step) => ({ step, reward: step / 20 })),
    success: [
      { step: 0, train: 0, eval: 0 },
      { step: 20, train: 1, eval: 1 / 3 },
    ],
    total_steps: 80,
  });
  const at = (text: string) => Number(new RegExp(`x="([\\d.]+)"[^>]*>${text}<`).exec(svg)?.[1]);
  expect(at("reward 1")).toBeLessThan(450);
  expect(at("train 100 %")).toBeGreaterThan(450);
  expect(at("eval 33 %")).toBeGreaterThan(450);
  expect(svg.match(/>step 80</g)).toHaveLength(2);
});
