import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { RESULT } from "../../../test/helpers/run-records.ts";
import type { TrainingView } from "../callbacks.ts";
import { tensorBoard } from "./tensorboard.node.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-tensorboard-"));
afterAll(() => rmSync(scratch, { recursive: true }));

/** CRC-32C bit by bit, unlike the table that the writer uses. */
function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffffn;
  for (const byte of bytes) {
    crc ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit++) crc = (crc >> 1n) ^ (crc & 1n ? 0x82f63b78n : 0n);
  }
  return Number(crc ^ 0xffffffffn);
}

function masked(crc: number): number {
  return Number((((BigInt(crc) >> 15n) | (BigInt(crc) << 17n)) + 0xa282ead8n) & 0xffffffffn);
}

/** The records of an event file, checksums verified. */
function recordsOf(file: Buffer): Buffer[] {
  const records: Buffer[] = [];
  for (let at = 0; at < file.length; ) {
    const length = Number(file.readBigUInt64LE(at));
    expect(file.readUInt32LE(at + 8)).toBe(masked(crc32c(file.subarray(at, at + 8))));
    const data = file.subarray(at + 12, at + 12 + length);
    expect(file.readUInt32LE(at + 12 + length)).toBe(masked(crc32c(data)));
    records.push(data);
    at += length + 16;
  }
  return records;
}

type Field = readonly [number: number, value: number | Buffer];

/** The fields of a protobuf message. */
function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = () => {
    let [value, shift] = [0n, 0n];
    for (;;) {
      const byte = message[at++]!;
      value |= BigInt(byte & 127) << shift;
      shift += 7n;
      if (byte < 128) return Number(value);
    }
  };
  const take = (length: number) => {
    at += length;
    return message.subarray(at - length, at);
  };
  while (at < message.length) {
    const key = varint();
    const read = {
      0: varint,
      1: () => take(8).readDoubleLE(),
      2: () => take(varint()),
      5: () => take(4).readFloatLE(),
    };
    fields.push([key >> 3, read[(key & 7) as keyof typeof read]()]);
  }
  return fields;
}

const field = (message: Buffer, number: number) => fieldsOf(message).find(([found]) => found === number)?.[1];

function scalarsOf(event: Buffer): Record<string, number> {
  const summary = field(event, 5) as Buffer;
  return Object.fromEntries(
    fieldsOf(summary).map(([, value]) => [String(field(value as Buffer, 1)), field(value as Buffer, 2) as number]),
  );
}

test("writes scalars that another reader decodes; a resumed run starts another file", () => {
  const view = (step: number) => ({ state: { step } }) as TrainingView;
  const folder = join(scratch, "tensorboard");
  const callback = tensorBoard(folder);
  void callback.on_evaluate!(view(0), RESULT.before);
  void callback.on_log!(view(300), { step: 300, reward: 0.25, "rewards/größe/mean": -1.5, kl: Number.NaN });
  const [name] = readdirSync(folder);
  expect(name).toMatch(/^events\.out\.tfevents\.\d{10}\./);
  const events = recordsOf(readFileSync(join(folder, name!)));
  expect(String(field(events[0]!, 3))).toBe("brain.Event:2");
  expect(field(events[1]!, 7)).toEqual(Buffer.from([8, 1])); // the session's START
  expect(events.map((event) => field(event, 2))).toEqual([0, 0, 0, 300]);
  expect(scalarsOf(events[2]!)["eval/unseen/greedy/success_rate"]).toBeCloseTo(0.1);
  expect(scalarsOf(events[3]!)).toEqual({ "train/reward": 0.25, "train/rewards/größe/mean": -1.5 });
  expect(field(events[3]!, 1)).toBeGreaterThan(1.7e9);

  void tensorBoard(folder).on_log!(view(200), { step: 200, reward: 0.5 });
  const files = readdirSync(folder).sort();
  expect(files).toHaveLength(2);
  const resumed = recordsOf(readFileSync(join(folder, files[1]!)));
  expect(resumed.map((event) => field(event, 2))).toEqual([0, 200, 200]);
});
