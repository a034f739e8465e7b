import { expect, test } from "vitest";
import {
  decodeForwardBackward,
  decodePassOutput,
  decodeSampleOutput,
  encodeForwardBackward,
  encodePassOutput,
  encodeSampleOutput,
} from "./messages.ts";

const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, "hex"));
const hex = (data: Uint8Array) => Buffer.from(data).toString("hex");

test("a training request has the bytes that the stock client sends", () => {
  const request = {
    model_id: "m",
    seq_id: 300,
    forward_only: false,
    forward_backward_input: {
      loss_fn: "ppo",
      loss_fn_config: { clip_low_threshold: 0.5 },
      data: [
        {
          model_input: { chunks: [{ type: "encoded_text" as const, tokens: [1, 70000] }] },
          loss_fn_inputs: {
            target_tokens: { data: [70000, 2], dtype: "int64" as const, shape: [2] },
          },
        },
      ],
    },
  };
  expect(hex(encodeForwardBackward(request))).toBe(STOCK_REQUEST);
  expect(decodeForwardBackward(bytes(STOCK_REQUEST))).toEqual(request);
});

test("outputs and samples survive both directions, NaN and missing log-probs included", () => {
  const output = {
    loss_fn_outputs: [{ logprobs: { data: [-0.5, -1.25] } }, { logprobs: { data: [] } }],
    metrics: { "loss:sum": 1.5 },
  };
  expect(decodePassOutput(encodePassOutput(output))).toEqual(output);
  const sample = {
    sequences: [
      { stop_reason: "length" as const, tokens: [5, 151_645], logprobs: [-0.5, -2] },
      { stop_reason: "stop" as const, tokens: [], logprobs: [] },
    ],
    prompt_logprobs: [null, -3],
  };
  expect(decodeSampleOutput(encodeSampleOutput(sample))).toEqual(sample);
});

test("bytes that are cut off or of another message are refused", () => {
  const whole = bytes(STOCK_REQUEST);
  for (let length = 1; length < whole.length; length++) {
    const decode = () => decodeForwardBackward(whole.subarray(0, length));
    try {
      decode();
    } catch (error) {
      expect(error).toBeInstanceOf(RangeError);
    }
  }
  expect(() => decodePassOutput(bytes("0aff"))).toThrow("a number is cut off");
  expect(() => decodeSampleOutput(bytes("0a05ff"))).toThrow("a field is cut off");
  expect(() => decodeSampleOutput(bytes("0f"))).toThrow("unknown wire type");
});

/** Made by the stock client, version 0.38.0. */
const STOCK_REQUEST =
  "0a016d10ac021a380a0c0a0a0a08010000007011010012280a0d7461726765745f746f6b656e7312170a10701101000000000002000000000000001802220102220370706f2a1d0a12636c69705f6c6f775f7468726573686f6c6411000000000000e03f3a1f0a12636c69705f6c6f775f7468726573686f6c64120909000000000000e03f";
