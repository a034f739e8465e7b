// Serves the playground over HTTP: the built site under /web, and the bundled model next to it.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { streamBytes, streamFile } from "../openenv/streams.node.ts";

export interface PlaygroundOptions {
  /** The built site. @default the package's own */
  readonly site?: string;
  /** The folder served as `model/` if the site has none. @default the bundled starter */
  readonly model?: string;
}

/** The built site of this package. */
export const PLAYGROUND_SITE = fileURLToPath(new URL("../../../dist/web/playground/", import.meta.url));

/** The package's bundled model, if present. */
export const PLAYGROUND_MODEL = fileURLToPath(new URL("../../../models/starter/", import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".wasm": "application/wasm",
  ".md": "text/markdown; charset=utf-8",
  ".txt": "text/plain; charset=utf-8",
};

/** A list of the model's files, so that the page requests none that does not exist. */
export const MODEL_LIST = "files.json";

/** The content of `MODEL_LIST` for a model folder. */
export function modelList(folder: string): string {
  const files = readdirSync(folder).filter((file) => PART.test(file) && file !== MODEL_LIST);
  return `${JSON.stringify(files.sort())}\n`;
}

/** Allowed path components; excludes `..`, hidden files and special characters. */
const PART = /^[A-Za-z0-9_-][A-Za-z0-9_.-]*$/;

const OURS = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; base-uri 'none'";
/** The page's own policy, plus no framing. Workers start threads from blobs, which the page may not. */
const PAGE_POLICY = `${OURS}; style-src 'self'; img-src 'self' data:; worker-src 'self' blob:; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types worker`;
const FILE_POLICY = `${OURS}; worker-src blob:`;

/** Answers GET and HEAD for the playground's files; undefined for other requests. */
export function playgroundHandler({
  site = PLAYGROUND_SITE,
  model = PLAYGROUND_MODEL,
}: PlaygroundOptions = {}): (request: Request) => Promise<Response | undefined> {
  const packed = new Map<string, { readonly tag: string; readonly bytes: Uint8Array }>();
  /** A compressed file, cached until it changes. */
  const packedBytes = (file: string, tag: string): Uint8Array => {
    const known = packed.get(file);
    if (known?.tag === tag) return known.bytes;
    const bytes = gzipSync(readFileSync(file));
    packed.set(file, { tag, bytes });
    return bytes;
  };

  return async (request) => {
    const { pathname } = new URL(request.url);
    const isRead = request.method === "GET" || request.method === "HEAD";
    if (!isRead || !(pathname === "/web" || pathname.startsWith("/web/"))) return undefined;
    // The page's relative URLs need the trailing slash.
    if (pathname === "/web") return new Response(null, { status: 308, headers: { location: "/web/" } });
    if (pathname === `/web/model/${MODEL_LIST}` && existsSync(model) && !existsSync(join(site, "model")))
      return new Response(modelList(model), {
        headers: { "content-type": TYPES[".json"]!, "cache-control": "no-cache" },
      });
    const file = fileOf(pathname.slice("/web/".length), site, model);
    if (!file) return existsSync(join(site, "index.html")) ? undefined : unbuilt();
    const { size, mtimeMs } = statSync(file);
    const tag = `"${size.toString(36)}-${Math.floor(mtimeMs).toString(36)}"`;
    const type = TYPES[extname(file)] ?? "application/octet-stream";
    const isPage = type.startsWith("text/html");
    const headers: Record<string, string> = {
      "content-type": type,
      etag: tag,
      // File names in assets/ contain a content hash.
      "cache-control": pathname.startsWith("/web/assets/") ? "public, max-age=31536000, immutable" : "no-cache",
      "content-security-policy": isPage ? PAGE_POLICY : FILE_POLICY,
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-embedder-policy": "require-corp",
      "cross-origin-resource-policy": "same-origin",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      vary: "accept-encoding",
    };
    if (request.headers.get("if-none-match") === tag) return new Response(null, { status: 304, headers });
    const isPacked = type in SHRINKS && /\bgzip\b/.test(request.headers.get("accept-encoding") ?? "");
    if (isPacked) headers["content-encoding"] = "gzip";
    const bytes = isPacked ? packedBytes(file, tag) : undefined;
    headers["content-length"] = String(bytes?.length ?? size);
    if (request.method === "HEAD") return new Response(null, { headers });
    return new Response(bytes ? streamBytes(bytes) : streamFile(file), { headers });
  };
}

/** Types worth compressing: weights are not. */
const SHRINKS: Readonly<Record<string, true>> = Object.fromEntries(
  Object.values(TYPES).map((type) => [type, true as const]),
);

function fileOf(path: string, site: string, model: string): string | undefined {
  let parts: string[];
  try {
    parts = decodeURIComponent(path).split("/");
  } catch {
    return undefined;
  }
  if (parts.at(-1) === "") parts[parts.length - 1] = "index.html";
  if (!parts.every((part) => PART.test(part))) return undefined;
  const candidates = [join(site, ...parts)];
  if (parts[0] === "model") candidates.push(join(model, ...parts.slice(1)));
  return candidates.find((file) => statSync(file, { throwIfNoEntry: false })?.isFile());
}

function unbuilt(): Response {
  return new Response("The playground is not built: run `npm run build`.\n", { status: 503 });
}
