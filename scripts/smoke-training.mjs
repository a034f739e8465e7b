// The training by which installations are compared (smoke.mjs, node-versions.mjs), and the hashes of what it writes.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The smallest training that still samples, learns and evaluates. */
export const TRAINING = [
  ...["--max-steps", "2", "--per-device-train-batch-size", "4", "--gradient-accumulation-steps", "1"],
  ...["--num-generations", "2", "--step-budget", "3", "--max-completion-length", "96", "--eval-steps", "0"],
  ...["--final-eval-episodes", "1", "--comparison-episodes", "1", "--logging-steps", "1", "--threads", "2"],
];

export function hashesOf(run) {
  const hashOf = (file) =>
    createHash("sha256")
      .update(readFileSync(join(run, file)))
      .digest("hex");
  return { metrics: hashOf("metrics.jsonl"), model: hashOf("model/model.safetensors") };
}
