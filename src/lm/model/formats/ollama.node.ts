// Resolves `ollama:NAME[:TAG]` to the GGUF file of a model that Ollama has on this disk.
import { readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { ModelLoadError } from "../../../errors.ts";

const PREFIX = "ollama:";
/** Folder for models that were pulled without naming a host. */
const DEFAULT_HOST = "registry.ollama.ai";
const DEFAULT_NAMESPACE = "library";
const DEFAULT_TAG = "latest";
/** Matches a host, namespace, name or tag, but never a path out of Ollama's folder. */
const PART = /^\w(?:[\w-]|\.(?!\.)){0,127}$/;
/** Maximum size of a manifest; real ones have about 1 kB. */
const MAX_MANIFEST_BYTES = 1_000_000;

const MODEL = "application/vnd.ollama.image.model";
const ADAPTER = "application/vnd.ollama.image.adapter";
const manifest = z.looseObject({
  layers: z
    .array(
      z.looseObject({
        mediaType: z.string(),
        digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
        size: z.int().min(0),
      }),
    )
    .max(1_000),
});

/** Whether a name refers to an Ollama model. */
export function isOllamaName(name: string): boolean {
  return name.startsWith(PREFIX);
}

/** The folder where Ollama keeps its models. */
export function ollamaStore(env: Readonly<Record<string, string | undefined>> = process.env): string {
  return env.OLLAMA_MODELS || join(homedir(), ".ollama", "models");
}

/** Finds the GGUF file of `ollama:[namespace/]name[:tag]`. */
export function ollamaModel(name: string, store = ollamaStore()): string {
  const refuse = (what: string, value: string, remedy: string, cause?: unknown) =>
    new ModelLoadError({ what: `${name}: ${what}`, value, remedy, cause });
  const { path, tag } = placeOf(name);
  const file = join(store, "manifests", ...path, tag);
  let text: string;
  try {
    const { size } = statSync(file);
    if (size > MAX_MANIFEST_BYTES) {
      throw refuse(`its manifest has more than ${MAX_MANIFEST_BYTES} bytes`, file, "pull the model again");
    }
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof ModelLoadError) throw error;
    const remedy = "`ollama list` shows the models there are; OLLAMA_MODELS names another store";
    throw refuse("no such model in Ollama's store", file, remedy, error);
  }
  const read = manifest.safeParse(parsed(text));
  if (!read.success) throw refuse("its manifest cannot be read", file, "pull the model again");
  const { layers } = read.data;
  if (layers.some(({ mediaType }) => mediaType === ADAPTER)) {
    throw refuse("it is a model with an adapter, which is not supported", file, "use the model without it");
  }
  const layer = layers.find(({ mediaType }) => mediaType === MODEL);
  if (!layer) throw refuse("it has no weights on this disk", file, "use a model that runs locally");
  const blob = join(store, "blobs", layer.digest.replace(":", "-"));
  const size = statSync(blob, { throwIfNoEntry: false })?.size;
  if (size === undefined) throw refuse("its file is missing", blob, "pull the model again");
  if (size !== layer.size)
    throw refuse(`its file should have ${layer.size} bytes, but has ${size}`, blob, "pull it again");
  return blob;
}

/** Parses a name into the manifest's folders and the tag. */
function placeOf(name: string): { readonly path: readonly string[]; readonly tag: string } {
  const [, rest, tag = DEFAULT_TAG] = /^ollama:([^:]*)(?::(.*))?$/s.exec(name) ?? [];
  const given = (rest ?? "").split("/");
  const path = [DEFAULT_HOST, DEFAULT_NAMESPACE].slice(0, Math.max(0, 3 - given.length)).concat(given);
  if (path.length === 3 && [...path, tag].every((part) => PART.test(part))) return { path, tag };
  throw new ModelLoadError({
    what: "not the name of a model of Ollama's",
    value: name,
    remedy: "write ollama:NAME or ollama:NAME:TAG, as `ollama list` shows it",
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
