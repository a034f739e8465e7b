// Loads the reference models and what transformers computed with them (README.md here says how they were made).
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { unpack } from "../../src/gym/data/archives/unpack.node.ts";

/** The tiny models, each a folder beside this file in Hugging Face layout. */
export const REFERENCES = [
  ...["qwen3-tied", "qwen3-untied", "llama-tied", "llama-untied"],
  ...["qwen2-tied", "llama3-untied"],
] as const;
export type ReferenceName = (typeof REFERENCES)[number];

export interface ReferenceTensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/** Losses before each of 10 AdamW steps and after the last; gradient norms before clipping. */
export interface ReferenceTraining {
  readonly losses: Float64Array;
  readonly grad_norms: Float64Array;
}

export interface Reference {
  readonly name: ReferenceName;
  /** Path of the Hugging Face folder. */
  readonly folder: string;
  readonly config: Record<string, unknown>;
  /** Parameters by their Hugging Face names. */
  readonly parameters: ReadonlyMap<string, ReferenceTensor>;
  /** The sequences: 17, 5 and 29 token ids. */
  readonly sequences: readonly Int32Array[];
  /** [51, vocab_size]: logits of every position, sequence after sequence, not divided by the temperature. */
  readonly logits: ReferenceTensor;
  /** Log-prob of each token but a sequence's first (16 + 4 + 28), at temperature 0.8. */
  readonly logp: Float32Array;
  /** Entropy of the distribution at the same positions and temperature. */
  readonly entropy: Float32Array;
  /** Weights of the scalar loss Σ weights · logp + 0.01 · Σ entropy. */
  readonly weights: Float32Array;
  readonly loss: number;
  /** Gradient of that loss by each parameter. */
  readonly gradients: ReadonlyMap<string, ReferenceTensor>;
  /** Mean cross-entropy of the 48 targets at temperature 1; every parameter decayed. */
  readonly adamw: ReferenceTraining;
  /** The same with weight decay on matrices only, as TRL's trainer sets it. */
  readonly adamwUndecayedNorms: ReferenceTraining;
}

export const TEMPERATURE = 0.8;
export const ENTROPY_WEIGHT = 0.01;
export const ADAMW = { lr: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01, max_grad_norm: 1 } as const;

/** Reads one of the tiny models; `root` is this file's folder, for bundles. */
export function readReference(name: ReferenceName, root: string | URL = import.meta.url): Reference {
  const folder = fileURLToPath(new URL(`${name}/`, root));
  const expected = readSafetensors(`${folder}expected.safetensors`);
  const floats = (key: string) => tensor(expected, key, Float32Array);
  const doubles = (key: string) => tensor(expected, key, Float64Array).data;
  const ids = tensor(expected, "ids", Int32Array).data;
  let start = 0;
  const sequences = Array.from(tensor(expected, "lengths", Int32Array).data, (length) => {
    start += length;
    return ids.subarray(start - length, start);
  });
  const training = (key: string) => ({ losses: doubles(`${key}.losses`), grad_norms: doubles(`${key}.grad_norms`) });
  return {
    name,
    folder,
    config: JSON.parse(readFileSync(`${folder}config.json`, "utf8")),
    parameters: floatTensors(readSafetensors(`${folder}model.safetensors`), ""),
    sequences,
    logits: floats("logits"),
    logp: floats("logp").data,
    entropy: floats("entropy").data,
    weights: floats("weights").data,
    loss: doubles("loss")[0]!,
    gradients: floatTensors(expected, "grad."),
    adamw: training("adamw"),
    adamwUndecayedNorms: training("adamw_undecayed_norms"),
  };
}

/** Models with a LoRA adapter and peft's results for it. */
export const LORA_REFERENCES = ["qwen3-tied", "llama-untied"] as const satisfies readonly ReferenceName[];

export interface LoraReference {
  /** PEFT's folder. */
  readonly folder: string;
  readonly logits: Float32Array;
  readonly logp: Float32Array;
  /** Gradient of the reference's loss by each A and B. */
  readonly gradients: ReadonlyMap<string, ReferenceTensor>;
  readonly adamw: ReferenceTraining;
}

/** Reads an adapter's numbers; sequences, weights and loss are the reference's own. */
export function readLora(name: (typeof LORA_REFERENCES)[number]): LoraReference {
  const folder = fileURLToPath(new URL(`${name}/lora/`, import.meta.url));
  const expected = readSafetensors(`${folder}expected.safetensors`);
  const doubles = (key: string) => tensor(expected, key, Float64Array).data;
  return {
    folder,
    logits: tensor(expected, "logits", Float32Array).data,
    logp: tensor(expected, "logp", Float32Array).data,
    gradients: floatTensors(expected, "grad."),
    adamw: { losses: doubles("adamw.losses"), grad_norms: doubles("adamw.grad_norms") },
  };
}

/** What transformers computes with a real pretrained model, minimind2-small. */
export interface MinimindReference {
  /** The prompt after the chat template, and its token ids. */
  readonly text: string;
  readonly ids: readonly number[];
  /** The 20 highest logits at each position of the prompt, and their tokens. */
  readonly top_ids: readonly (readonly number[])[];
  readonly top_logits: readonly (readonly number[])[];
  /** All logits of the last position. */
  readonly last_logits: readonly number[];
  /** The next 64 tokens, decoded greedily. */
  readonly greedy: readonly number[];
  readonly greedy_text: string;
  /** The smallest difference between the logits of a greedy token and the one after it. */
  readonly greedy_least_lead: number;
}

/** Reads minimind.json; the model itself is not part of the project. */
export function readMinimind(): MinimindReference {
  return JSON.parse(readFileSync(new URL("minimind.json", import.meta.url), "utf8"));
}

const MINIMIND_ARCHIVE = fileURLToPath(new URL("../../../shared/models/minimind2-small.tar.xz", import.meta.url));

/** Whether tests of the real model can run; otherwise they are skipped. */
export const hasMinimind = process.env.SQLENV_MINIMIND !== undefined || existsSync(MINIMIND_ARCHIVE);

/** Folder of the real model: SQLENV_MINIMIND, or the archive beside the project, unpacked once (5 s) into the temporary folder. */
export async function minimindFolder(): Promise<string> {
  if (process.env.SQLENV_MINIMIND !== undefined) return process.env.SQLENV_MINIMIND;
  const folder = join(tmpdir(), `sqlenv-minimind-${statSync(MINIMIND_ARCHIVE).size}`);
  if (!existsSync(folder)) {
    const aside = mkdtempSync(`${folder}-`);
    await unpack(MINIMIND_ARCHIVE, aside);
    try {
      renameSync(aside, folder);
    } catch {
      rmSync(aside, { recursive: true }); // another test was faster
    }
  }
  return join(folder, "minimind2-small");
}

type Numbers = Float32Array | Float64Array | Int32Array;
interface RawTensor {
  readonly shape: readonly number[];
  readonly data: Numbers;
}

/** Safetensors: 8 bytes of header length, a JSON header of names, types, shapes and offsets, then the numbers. */
function readSafetensors(path: string): Map<string, RawTensor> {
  const file = readFileSync(path);
  const headerLength = Number(file.readBigUInt64LE(0));
  const header: Record<string, { dtype: string; shape: number[]; data_offsets: [number, number] }> = JSON.parse(
    file.toString("utf8", 8, 8 + headerLength),
  );
  const types = { F32: Float32Array, F64: Float64Array, I32: Int32Array };
  return new Map(
    Object.entries(header)
      .filter(([name]) => name !== "__metadata__")
      .map(([name, { dtype, shape, data_offsets }]) => {
        const [from, to] = data_offsets.map((offset) => 8 + headerLength + offset);
        const bytes = Uint8Array.from(file.subarray(from, to)); // a copy starts at an aligned address
        return [name, { shape, data: new types[dtype as keyof typeof types](bytes.buffer) }];
      }),
  );
}

function tensor<T extends Numbers>(
  tensors: ReadonlyMap<string, RawTensor>,
  name: string,
  type: new () => T,
): { readonly shape: readonly number[]; readonly data: T } {
  const found = tensors.get(name);
  if (!(found?.data instanceof type)) throw new TypeError(`${name}: expected a ${type.name}`);
  return { shape: found.shape, data: found.data };
}

function floatTensors(tensors: ReadonlyMap<string, RawTensor>, prefix: string): Map<string, ReferenceTensor> {
  return new Map(
    [...tensors.keys()]
      .filter((name) => name.startsWith(prefix))
      .map((name) => [name.slice(prefix.length), tensor(tensors, name, Float32Array)]),
  );
}
