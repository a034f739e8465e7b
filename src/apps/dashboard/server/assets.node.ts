// The built page's files, and the security headers of every response.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { SqlEnvError } from "../../../errors.ts";

/** Only our own files may run or be fetched, no text may become markup, and the page may not be framed. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
};

export interface Asset {
  readonly type: string;
  readonly bytes: Buffer;
  readonly zipped: Buffer;
}

/** The built page by file name, such as "index.html" and "assets/index-abc.js"; read once. */
export function dashboardAssets(): ReadonlyMap<string, Asset> {
  assets ??= readAssets();
  return assets;
}
let assets: ReadonlyMap<string, Asset> | undefined;

function readAssets(): ReadonlyMap<string, Asset> {
  // Next to the built server, or in dist/ when the sources run directly.
  const places = ["../../../web/dashboard/", "../../../../dist/web/dashboard/"].map((at) =>
    fileURLToPath(new URL(at, import.meta.url)),
  );
  const folder = places.find((place) => existsSync(join(place, "index.html")));
  if (!folder)
    throw new SqlEnvError("not_built", {
      what: "the dashboard's page has not been built",
      value: places[0],
      remedy: "run npm run build",
    });
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => extname(name) in TYPES);
  return new Map(
    names.map((name) => {
      const bytes = readFileSync(join(folder, name));
      return [
        name.replaceAll("\\", "/"),
        { type: TYPES[extname(name)]!, bytes, zipped: gzipSync(bytes, { level: 9 }) },
      ];
    }),
  );
}
