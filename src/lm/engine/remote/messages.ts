// The messages of the Tinker API that carry tensors, in JSON and in protobuf (package tinker_public): schemas of the
// JSON, and both directions of the protobuf, since the client and the server here use the same ones.
import { z } from "zod";
import { ProtoReader, ProtoWriter } from "./protobuf.ts";

export const PROTOBUF = "application/x-protobuf";

const token = z.int().min(0);
/** In JSON, null stands for a number that JSON does not have. */
const number = z
  .number()
  .nullable()
  .transform((value) => value ?? Number.NaN);

const chunkSchema = z.looseObject({ type: z.literal("encoded_text").default("encoded_text"), tokens: z.array(token) });
export const modelInputSchema = z.looseObject({ chunks: z.array(chunkSchema) });
const tensorSchema = z.looseObject({
  data: z.array(number),
  dtype: z.enum(["float32", "int64"]).nullish(),
  shape: z.array(z.int()).nullish(),
});
const datumSchema = z.looseObject({
  model_input: modelInputSchema,
  loss_fn_inputs: z.record(z.string(), tensorSchema),
});
const passInputSchema = z.looseObject({
  data: z.array(datumSchema),
  loss_fn: z.string(),
  loss_fn_config: z.record(z.string(), z.union([z.number(), z.string()])).nullish(),
});

export const forwardBackwardSchema = z.looseObject({
  model_id: z.string(),
  seq_id: z.int().nullish(),
  forward_backward_input: passInputSchema,
  forward_only: z.boolean().default(false),
});
/** The body of /forward. */
export const forwardSchema = z.looseObject({
  model_id: z.string(),
  seq_id: z.int().nullish(),
  forward_input: passInputSchema,
});

export const passOutputSchema = z.looseObject({
  loss_fn_outputs: z.array(z.record(z.string(), tensorSchema)),
  metrics: z.record(z.string(), number).default({}),
});

export const sampleOutputSchema = z.looseObject({
  sequences: z
    .array(
      z.looseObject({
        stop_reason: z.enum(["stop", "length"]),
        tokens: z.array(token),
        logprobs: z.array(number).nullish(),
      }),
    )
    .min(1),
  prompt_logprobs: z.array(z.number().nullable()).nullish(),
});

export type WireTensor = z.output<typeof tensorSchema>;
export type WireDatum = z.output<typeof datumSchema>;
export type ForwardBackwardRequest = z.output<typeof forwardBackwardSchema>;
export type PassOutput = z.output<typeof passOutputSchema>;
export type SampleOutput = z.output<typeof sampleOutputSchema>;

/** A whole prompt as the API's chunks. */
export function modelInput(tokens: readonly number[]): { chunks: { type: "encoded_text"; tokens: number[] }[] } {
  return { chunks: [{ type: "encoded_text", tokens: [...tokens] }] };
}

// ---- Protobuf -------------------------------------------------------------------------------------------------------

const FLOAT32 = 1;
const INT64 = 2;
const INT32 = 3;
const BFLOAT16 = 4;

export function encodeForwardBackward({
  model_id,
  seq_id,
  forward_backward_input: { data, loss_fn, loss_fn_config },
  forward_only,
}: ForwardBackwardRequest): Uint8Array {
  const writer = new ProtoWriter().string(1, model_id).varint(2, seq_id ?? 0);
  for (const { model_input, loss_fn_inputs } of data)
    writer.message(3, (datum) => {
      for (const { tokens } of model_input.chunks)
        datum.message(1, (chunk) => chunk.message(1, (text) => text.bytes(1, bytesOf(Int32Array.from(tokens)))));
      for (const [name, tensor] of Object.entries(loss_fn_inputs))
        datum.message(2, (entry) => entry.string(1, name).message(2, (value) => writeTensor(value, tensor)));
    });
  writer.string(4, loss_fn);
  for (const [name, value] of Object.entries(loss_fn_config ?? {})) {
    const isNumber = typeof value === "number";
    if (isNumber) writer.message(5, (entry) => entry.string(1, name).double(2, value));
    writer.message(7, (entry) =>
      entry.string(1, name).message(2, (either) => (isNumber ? either.double(1, value) : either.string(2, value))),
    );
  }
  if (forward_only) writer.varint(6, 1);
  return writer.finish();
}

/** Throws RangeError if the bytes are no such message. */
export function decodeForwardBackward(bytes: Uint8Array): ForwardBackwardRequest {
  const message = new ProtoReader(bytes);
  const config: Record<string, number | string> = {};
  for (const entry of message.messages(5)) config[entry.string(1)] = entry.number(2);
  for (const entry of message.messages(7)) {
    const [value] = entry.messages(2);
    if (value) config[entry.string(1)] = value.has(2) ? value.string(2) : value.number(1);
  }
  return {
    model_id: message.string(1),
    seq_id: message.number(2),
    forward_backward_input: {
      loss_fn: message.string(4),
      loss_fn_config: config,
      data: message.messages(3).map((datum) => ({
        model_input: {
          chunks: datum.messages(1).map((chunk) => {
            const [text] = chunk.messages(1);
            if (!text) throw new RangeError("a chunk is not text");
            return { type: "encoded_text" as const, tokens: numbersOf(text.bytes(1), INT32) };
          }),
        },
        loss_fn_inputs: Object.fromEntries(
          datum.messages(2).map((entry) => [entry.string(1), readTensor(entry.messages(2)[0])]),
        ),
      })),
    },
    forward_only: message.number(6) === 1,
  };
}

export function encodePassOutput({ loss_fn_outputs, metrics }: PassOutput): Uint8Array {
  const writer = new ProtoWriter().string(1, "ArrayRecord");
  writer.message(2, (record) => {
    record.string(1, "ArrayRecord");
    for (const name of Object.keys(loss_fn_outputs[0] ?? {})) {
      const rows = loss_fn_outputs.map((output) => output[name]?.data ?? []);
      const offsets = new BigInt64Array(rows.length + 1);
      for (const [i, { length }] of rows.entries()) offsets[i + 1] = offsets[i]! + BigInt(4 * length);
      record.message(2, (entry) =>
        entry.string(1, name).message(2, (batched) =>
          batched
            .bytes(1, bytesOf(Float32Array.from(rows.flat())))
            .bytes(2, bytesOf(offsets))
            .varint(3, FLOAT32),
        ),
      );
    }
    record.varint(3, loss_fn_outputs.length);
  });
  for (const [name, value] of Object.entries(metrics))
    writer.message(3, (entry) => entry.string(1, name).double(2, value));
  return writer.finish();
}

/** Throws RangeError if the bytes are no such message. */
export function decodePassOutput(bytes: Uint8Array): PassOutput {
  const message = new ProtoReader(bytes);
  const outputs: Record<string, WireTensor>[] = [];
  for (const record of message.messages(2)) {
    const first = outputs.length;
    for (const field of record.messages(2)) {
      const [batched] = field.messages(2);
      if (!batched) continue;
      const dtype = batched.number(3);
      const data = batched.bytes(1);
      const offsets = numbersOf(batched.bytes(2), INT64);
      for (let i = 0; i + 1 < offsets.length; i++) {
        outputs[first + i] ??= {};
        outputs[first + i]![field.string(1)] = { data: numbersOf(data.subarray(offsets[i], offsets[i + 1]), dtype) };
      }
    }
    while (outputs.length < first + record.number(3)) outputs.push({});
  }
  const metrics = Object.fromEntries(message.messages(3).map((entry) => [entry.string(1), entry.number(2)]));
  return { loss_fn_outputs: outputs, metrics };
}

export function encodeSampleOutput({ sequences, prompt_logprobs }: SampleOutput): Uint8Array {
  const writer = new ProtoWriter();
  for (const { stop_reason, tokens, logprobs } of sequences)
    writer.message(1, (sequence) => {
      sequence.varint(1, stop_reason === "length" ? 1 : 0).bytes(2, bytesOf(Int32Array.from(tokens)));
      if (logprobs) sequence.bytes(3, bytesOf(Float32Array.from(logprobs)));
    });
  if (prompt_logprobs) writer.bytes(2, bytesOf(Float32Array.from(prompt_logprobs, (value) => value ?? Number.NaN)));
  return writer.finish();
}

/** Throws RangeError if the bytes are no such message. */
export function decodeSampleOutput(bytes: Uint8Array): SampleOutput {
  const message = new ProtoReader(bytes);
  return {
    sequences: message.messages(1).map((sequence) => ({
      stop_reason: sequence.number(1) === 1 ? "length" : "stop",
      tokens: numbersOf(sequence.bytes(2), INT32),
      logprobs: sequence.has(3) ? numbersOf(sequence.bytes(3), FLOAT32) : null,
    })),
    prompt_logprobs: message.has(2)
      ? numbersOf(message.bytes(2), FLOAT32).map((value) => (Number.isNaN(value) ? null : value))
      : null,
  };
}

function writeTensor(writer: ProtoWriter, { data, dtype, shape }: WireTensor): void {
  if (dtype === "int64") writer.bytes(1, bytesOf(BigInt64Array.from(data, BigInt))).varint(3, INT64);
  else writer.bytes(1, bytesOf(Float32Array.from(data))).varint(3, FLOAT32);
  writer.packed(4, shape ?? [data.length]);
}

function readTensor(tensor: ProtoReader | undefined): WireTensor {
  if (!tensor) throw new RangeError("a tensor is missing");
  if (tensor.has(2)) throw new RangeError("a tensor is sparse, which is not supported");
  const dtype = tensor.number(3);
  const data = numbersOf(tensor.bytes(1), dtype);
  return { data, dtype: dtype === INT64 || dtype === INT32 ? "int64" : "float32", shape: tensor.numbers(4) };
}

function bytesOf(array: Int32Array | Float32Array | BigInt64Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** Little-endian numbers of a type. */
function numbersOf(bytes: Uint8Array, dtype: number): number[] {
  const size = dtype === INT64 ? 8 : dtype === BFLOAT16 ? 2 : 4;
  if (![FLOAT32, INT64, INT32, BFLOAT16].includes(dtype)) throw new RangeError(`unknown number type ${dtype}`);
  if (bytes.length % size !== 0) throw new RangeError("a tensor is cut off");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const word = new DataView(new ArrayBuffer(4));
  return Array.from({ length: bytes.length / size }, (_, i) => {
    if (dtype === INT64) return Number(view.getBigInt64(8 * i, true));
    if (dtype === INT32) return view.getInt32(4 * i, true);
    if (dtype === FLOAT32) return view.getFloat32(4 * i, true);
    word.setUint32(0, view.getUint16(2 * i, true) * 0x10000);
    return word.getFloat32(0);
  });
}
