// Downloads models by name from the Hugging Face Hub into its standard cache, which other programs share.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { DownloadError, ModelLoadError, messageOf } from "../../../errors.ts";
import { type Checksum, type DownloadOptions, download } from "../../../io/download.node.ts";
import { WEIGHTS_FILE, WEIGHTS_INDEX } from "./folder.ts";
import { isGgufFile } from "./gguf.node.ts";
import { isOllamaName, ollamaModel } from "./ollama.node.ts";
import { parseIndex } from "./safetensors.node.ts";

export interface HubProgress {
  /** The file being downloaded. */
  readonly file: string;
  /** Bytes received so far, over all files. */
  readonly received: number;
  /** Total bytes of all files known so far; grows once for a sharded model, when its index arrives. */
  readonly total: number;
}

export interface HubOptions extends Pick<DownloadOptions, "retries" | "backoffMs" | "stallMs" | "signal"> {
  /** A branch, tag or commit. @default "main" */
  readonly revision?: string | undefined;
  /** Access token for private and gated models. @default HF_TOKEN */
  readonly token?: string | undefined;
  /** @default HF_ENDPOINT, else https://huggingface.co */
  readonly endpoint?: string | undefined;
  /** @default HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub */
  readonly cacheDir?: string | undefined;
  /** Use only cached files. @default HF_HUB_OFFLINE */
  readonly offline?: boolean | undefined;
  readonly onProgress?: (progress: HubProgress) => void;
}

const NAME = /^[A-Za-z0-9][\w.-]{0,95}\/[A-Za-z0-9][\w.-]{0,95}$/;
const REVISION = /^[\w][\w./-]{0,199}$/;
const COMMIT = /^[0-9a-f]{40}$/;
const TOKENIZER_FILE = "tokenizer.json";
const CONFIG_FILE = "config.json";
const ADAPTER_FILE = "adapter_config.json";
/** Files that are downloaded if they exist. Weights come last, so that a folder with weights is complete. */
const SMALL_FILES = [
  CONFIG_FILE,
  "generation_config.json",
  TOKENIZER_FILE,
  "tokenizer_config.json",
  "special_tokens_map.json",
  "chat_template.jinja",
  "chat_template.json",
];
const MAX_REDIRECTS = 5;

const modelInfo = z.looseObject({
  sha: z.string().regex(COMMIT),
  siblings: z.array(z.looseObject({ rfilename: z.string() })).max(100_000),
});

/** Data shared by all requests for a model. */
interface Request {
  readonly id: string;
  readonly revision: string;
  readonly endpoint: string;
  readonly token: string | undefined;
  readonly options: HubOptions;
}

/** Folder of the models in this package. */
const BUNDLED = new URL("../../../../models/", import.meta.url);

/**
 * Finds a model's folder or GGUF file: an existing path, a bundled name such as "starter", `ollama:name`, or `org/name`
 * from the cache or the Hub.
 */
export async function resolveModel(nameOrPath: string, options: HubOptions = {}): Promise<string> {
  const own = ownFolder(nameOrPath);
  if (own !== undefined) return notARun(own);
  if (isOllamaName(nameOrPath)) return ollamaModel(nameOrPath);
  if (/\.gguf$/i.test(nameOrPath)) {
    throw new ModelLoadError({ what: "no such GGUF file", value: nameOrPath, remedy: "check the path" });
  }
  const { revision = "main" } = options;
  if (!NAME.test(nameOrPath) || nameOrPath.includes("..")) {
    throw new ModelLoadError({
      what: "no such model folder or GGUF file, and not a model's name on the Hub",
      value: nameOrPath,
      remedy: "give the path of a folder or a GGUF file, ollama:NAME, or a name such as Qwen/Qwen3-0.6B",
    });
  }
  if (!REVISION.test(revision) || revision.includes("..")) {
    throw new ModelLoadError({
      what: `${nameOrPath}: not a revision`,
      value: revision,
      remedy: "use a branch, tag or commit",
    });
  }
  const repo = join(options.cacheDir ?? hubCache(), `models--${nameOrPath.replace("/", "--")}`);
  const cached = cachedSnapshot(repo, revision);
  if (cached) return cached;
  if (options.offline ?? isOn(process.env.HF_HUB_OFFLINE)) {
    throw new ModelLoadError({
      what: "the model is not in the cache, and the Hub may not be asked (offline)",
      value: nameOrPath,
      remedy: "unset HF_HUB_OFFLINE, or give the path of a folder with the model",
    });
  }
  const endpoint = (options.endpoint ?? process.env.HF_ENDPOINT ?? "https://huggingface.co").replace(/\/+$/, "");
  const token = options.token ?? (process.env.HF_TOKEN || undefined);
  return fetchModel({ id: nameOrPath, revision, endpoint, token, options }, repo);
}

/**
 * Finds a model that needs no download: a path, an Ollama model, or one cached from the Hub; undefined if there is
 * none.
 *
 * @example
 * const folder = findModel("Qwen/Qwen3-0.6B"); // undefined: it would have to be downloaded
 */
export function findModel(nameOrPath: string, { cacheDir, revision = "main" }: HubOptions = {}): string | undefined {
  const own = isOllamaName(nameOrPath) ? ollamaModel(nameOrPath) : ownFolder(nameOrPath);
  if (own !== undefined || !NAME.test(nameOrPath)) return own;
  return cachedSnapshot(join(cacheDir ?? hubCache(), `models--${nameOrPath.replace("/", "--")}`), revision);
}

/** Rejects the folder of a training run, whose model is one level deeper. */
function notARun(folder: string): string {
  if (existsSync(join(folder, CONFIG_FILE)) || existsSync(join(folder, ADAPTER_FILE))) return folder;
  const inside = ["model", "adapter"]
    .map((name) => join(folder, name))
    .find((path) => existsSync(join(path, CONFIG_FILE)) || existsSync(join(path, ADAPTER_FILE)));
  if (inside === undefined) return folder;
  throw new ModelLoadError({
    what: "the folder is a training's, not a model's",
    value: folder,
    remedy: `give ${inside}`,
  });
}

/** An existing folder or file, or a bundled model's folder. */
function ownFolder(nameOrPath: string): string | undefined {
  if (statSync(nameOrPath, { throwIfNoEntry: false })?.isDirectory() || isGgufFile(nameOrPath)) return nameOrPath;
  if (!/^[a-z0-9-]+$/.test(nameOrPath)) return undefined;
  const bundled = fileURLToPath(new URL(`${nameOrPath}/`, BUNDLED));
  return existsSync(join(bundled, CONFIG_FILE)) ? bundled : undefined;
}

/** The Hub's standard cache folder. */
export function hubCache(env: Readonly<Record<string, string | undefined>> = process.env): string {
  if (env.HF_HUB_CACHE) return env.HF_HUB_CACHE;
  const home = env.HF_HOME || join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "huggingface");
  return join(home, "hub");
}

function isOn(value: string | undefined): boolean {
  return /^(?:1|true|yes|on)$/i.test(value ?? "");
}

/** The cached folder of a revision, if complete; does not check whether a branch has been updated. */
function cachedSnapshot(repo: string, revision: string): string | undefined {
  const ref = join(repo, "refs", revision);
  const commit = existsSync(ref) ? readFileSync(ref, "utf8").trim() : revision;
  const folder = join(repo, "snapshots", commit);
  return COMMIT.test(commit) && isWhole(folder) ? folder : undefined;
}

function isWhole(folder: string): boolean {
  if (![CONFIG_FILE, TOKENIZER_FILE].every((file) => existsSync(join(folder, file)))) return false;
  if (existsSync(join(folder, WEIGHTS_FILE))) return true;
  const index = join(folder, WEIGHTS_INDEX);
  if (!existsSync(index)) return false;
  const shards = new Set(Object.values(parseIndex(readFileSync(index, "utf8"), index)));
  return [...shards].every((shard) => existsSync(join(folder, shard)));
}

async function fetchModel(request: Request, repo: string): Promise<string> {
  const { id, revision, endpoint } = request;
  const { sha, names } = await listFiles(request);
  const folder = join(repo, "snapshots", sha);
  const address = (file: string) => `${endpoint}/${id}/resolve/${sha}/${file}`;
  onDisk(id, () => {
    mkdirSync(join(repo, "blobs"), { recursive: true });
    mkdirSync(folder, { recursive: true });
  });
  const small = SMALL_FILES.filter((file) => names.has(file));
  if (names.has(WEIGHTS_FILE)) {
    await fetchFiles(request, repo, folder, [...small, WEIGHTS_FILE], address);
  } else {
    const done = await fetchFiles(request, repo, folder, [...small, WEIGHTS_INDEX], address);
    await fetchFiles(request, repo, folder, shardsIn(join(folder, WEIGHTS_INDEX), names), address, done);
  }
  const ref = join(repo, "refs", revision);
  onDisk(id, () => {
    mkdirSync(dirname(ref), { recursive: true });
    if (!COMMIT.test(revision)) writeFileSync(ref, sha);
  });
  return folder;
}

function shardsIn(index: string, names: ReadonlySet<string>): string[] {
  const shards = [...new Set(Object.values(parseIndex(readFileSync(index, "utf8"), index)))].sort();
  const missing = shards.find((shard) => !names.has(shard));
  if (missing === undefined) return shards;
  throw new ModelLoadError({
    what: `${index} names a file that the model does not have`,
    value: missing,
    remedy: "use another revision of the model",
  });
}

async function listFiles(request: Request): Promise<{ sha: string; names: ReadonlySet<string> }> {
  const { id, revision, endpoint } = request;
  const response = await ask(request, `${endpoint}/api/models/${id}/revision/${encodeURIComponent(revision)}`, "GET");
  const info = modelInfo.safeParse(await response.json().catch(() => undefined));
  if (!info.success) {
    throw new ModelLoadError({
      what: `${id}: the answer is not one of the Hub's`,
      value: endpoint,
      remedy: "check HF_ENDPOINT",
      cause: info.error,
    });
  }
  const names = new Set(info.data.siblings.map(({ rfilename }) => rfilename));
  const lacks = (what: string, remedy: string) =>
    new ModelLoadError({ what: `${id} has no ${what}`, value: id, remedy });
  if (!names.has(CONFIG_FILE)) throw lacks(CONFIG_FILE, "choose a model in the transformers layout");
  if (!names.has(TOKENIZER_FILE)) throw lacks(TOKENIZER_FILE, "choose a model with a fast tokenizer");
  if (!names.has(WEIGHTS_FILE) && !names.has(WEIGHTS_INDEX)) {
    throw lacks("safetensors weights", "choose a model with them, or convert it with save_pretrained");
  }
  return { sha: info.data.sha, names };
}

interface RemoteFile {
  readonly name: string;
  readonly checksum: Checksum;
  readonly size: number;
}

/**
 * Downloads files into blobs named by their checksums and links them into the snapshot; returns the bytes received so
 * far.
 */
async function fetchFiles(
  request: Request,
  repo: string,
  folder: string,
  names: readonly string[],
  address: (file: string) => string,
  before = 0,
): Promise<number> {
  const { id, token, options } = request;
  const files: RemoteFile[] = [];
  for (const name of names) files.push(await describe(request, name, address(name)));
  const total = files.reduce((sum, { size }) => sum + size, before);
  let done = before;
  for (const { name, checksum, size } of files) {
    const blob = join(repo, "blobs", checksum.hex);
    if (!existsSync(blob)) {
      const { onProgress, retries, backoffMs, stallMs, signal } = options;
      try {
        await download(address(name), blob, {
          ...(retries !== undefined && { retries }),
          ...(backoffMs !== undefined && { backoffMs }),
          ...(stallMs !== undefined && { stallMs }),
          signal,
          headers: authorization(token),
          checksum,
          ...(size > 0 && { maxBytes: size }),
          onProgress: ({ received }) => onProgress?.({ file: name, received: done + received, total }),
        });
      } catch (error) {
        if (!(error instanceof DownloadError)) throw error;
        if (error.status !== undefined) throw answered(request, error.status, undefined);
        throw new ModelLoadError({
          what: `${id}: ${name} could not be fetched: ${error.what}`,
          value: error.value,
          remedy: error.remedy,
          cause: error,
        });
      }
    }
    done += size;
    onDisk(id, () => link(blob, join(folder, name)));
  }
  return done;
}

/** Gets a file's checksum and size from the Hub's headers. */
async function describe(request: Request, name: string, url: string): Promise<RemoteFile> {
  const { headers } = await ask(request, url, "HEAD");
  const etag = (headers.get("x-linked-etag") ?? headers.get("etag") ?? "").replace(/^W\//, "").replaceAll('"', "");
  const size = Number(headers.get("x-linked-size") ?? headers.get("content-length") ?? 0);
  if (/^[0-9a-f]{64}$/.test(etag)) return { name, size, checksum: { kind: "sha256", hex: etag } };
  if (COMMIT.test(etag)) return { name, size, checksum: { kind: "git", hex: etag } };
  throw new ModelLoadError({
    what: `${request.id}: the server gives no checksum for ${name} (ETag)`,
    value: etag,
    remedy: "check HF_ENDPOINT",
  });
}

function link(blob: string, path: string): void {
  if (existsSync(path)) return;
  rmSync(path, { force: true }); // removes a link whose blob is gone
  try {
    symlinkSync(join("..", "..", "blobs", basename(blob)), path);
  } catch {
    const aside = `${path}.part-${process.pid}`; // copies, for file systems without symbolic links
    copyFileSync(blob, aside);
    renameSync(aside, path);
  }
}

function authorization(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** Sends one request to the Hub. Follows redirects within the Hub; returns a redirect to large-file storage. */
async function ask(request: Request, url: string, method: "GET" | "HEAD"): Promise<Response> {
  const { retries = 5, backoffMs = 500, stallMs = 60_000, signal } = request.options;
  for (let failures = 0; ; failures++) {
    let reason: string;
    try {
      const response = await follow(request, url, method, stallMs);
      if (response.ok || (response.status >= 300 && response.status < 400)) return response;
      await response.body?.cancel();
      if (response.status < 500 && response.status !== 429 && response.status !== 408) {
        throw answered(request, response.status, response.headers.get("x-error-code") ?? undefined);
      }
      reason = `it answered ${response.status}`;
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ModelLoadError) throw error;
      reason = error instanceof Error && error.cause instanceof Error ? error.cause.message : messageOf(error);
    }
    if (failures >= retries) {
      throw new ModelLoadError({
        what: `the Hub cannot be reached for ${request.id} (${reason})`,
        value: new URL(url).origin,
        remedy: "check the connection and run the same command again, or give the path of a folder with the model",
      });
    }
    await wait(backoffMs * 2 ** failures, undefined, signal ? { signal } : {});
  }
}

async function follow({ token, options }: Request, url: string, method: string, timeoutMs: number): Promise<Response> {
  let at = url;
  for (let redirects = 0; ; redirects++) {
    const timeout = AbortSignal.timeout(timeoutMs);
    const response = await fetch(at, {
      method,
      redirect: "manual",
      headers: { ...authorization(token), "accept-encoding": "identity" },
      signal: options.signal ? AbortSignal.any([options.signal, timeout]) : timeout,
    });
    const location = response.headers.get("location");
    const target = location === null ? undefined : new URL(location, at);
    if (!target || target.origin !== new URL(url).origin || redirects === MAX_REDIRECTS) return response;
    // A large file's checksum is in the first response, not at the redirect's target.
    if (method === "HEAD" && response.headers.has("x-linked-etag")) return response;
    await response.body?.cancel();
    at = target.href;
  }
}

/** Makes the error for a status of the Hub. Without a token, private models and misspelt names look the same. */
function answered(
  { id, revision, endpoint, token }: Request,
  status: number,
  code: string | undefined,
): ModelLoadError {
  const error = (what: string, remedy: string) => new ModelLoadError({ what, value: id, remedy });
  const page = `${endpoint}/${id}`;
  if (code === "GatedRepo" || status === 403) {
    return error(
      "access to the model must be granted first",
      token === undefined
        ? `accept its conditions at ${page}, then set HF_TOKEN`
        : `accept its conditions at ${page} with the account that HF_TOKEN belongs to`,
    );
  }
  if (code === "RevisionNotFound") return error(`the model has no revision ${revision}`, `see ${page}`);
  if (status === 401) {
    return token === undefined
      ? error("no such model on the Hub, or a private one", "check the name; for a private model set HF_TOKEN")
      : error("the Hub does not accept the token, or it does not see the model", "check the name and HF_TOKEN");
  }
  if (status === 404) {
    return error("no such model on the Hub", "check the name, or give the path of a folder with the model");
  }
  return error(`the Hub answered ${status}`, `see ${page}`);
}

function onDisk(id: string, action: () => void): void {
  try {
    action();
  } catch (error) {
    throw new ModelLoadError({
      what: `${id}: the cache cannot be written (${messageOf(error)})`,
      value: id,
      remedy: "check permissions and free space, or set HF_HUB_CACHE to another folder",
      cause: error,
    });
  }
}
