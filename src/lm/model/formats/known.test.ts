import { expect, test } from "vitest";
import { configToJson, parameterCount, parseConfig } from "../config.ts";
import { KNOWN_MODELS } from "./known.ts";

/** Published numbers of parameters. */
const PUBLISHED: Readonly<Record<string, number>> = {
  "Qwen/Qwen3-0.6B": 596_049_920,
  "Qwen/Qwen3-1.7B": 1_720_574_976,
  "Qwen/Qwen2.5-0.5B-Instruct": 494_032_768,
  "Qwen/Qwen2.5-1.5B-Instruct": 1_543_714_304,
  "Qwen/Qwen2.5-Coder-0.5B-Instruct": 494_032_768,
  "Qwen/Qwen2.5-Coder-1.5B-Instruct": 1_543_714_304,
  "HuggingFaceTB/SmolLM2-135M-Instruct": 134_515_008,
  "HuggingFaceTB/SmolLM2-360M-Instruct": 361_821_120,
  "meta-llama/Llama-3.2-1B-Instruct": 1_235_814_400,
};

test("known models have the published numbers of parameters, and a download of two bytes for each", () => {
  expect(
    Object.fromEntries(Object.entries(KNOWN_MODELS).map(([name, { config }]) => [name, parameterCount(config)])),
  ).toEqual(PUBLISHED);
  for (const [name, { config, download }] of Object.entries(KNOWN_MODELS)) {
    expect(download / (2 * parameterCount(config)), name).toBeGreaterThan(0.99);
    expect(download / (2 * parameterCount(config)), name).toBeLessThan(1.3); // some files contain a tied head twice
    expect(parseConfig(configToJson(config)), name).toEqual(config);
  }
});
