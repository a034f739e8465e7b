// A hash of a model's weights, which identifies them in results.
import { createHash } from "node:crypto";
import { createReadStream, readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";

/** SHA-256 of a model's weights: of the only file, or of a list of all files' names and hashes; null without files. */
export async function weightsSha256(path: string): Promise<string | null> {
  const files = statSync(path).isFile()
    ? [path]
    : readdirSync(path)
        .filter((name) => name.endsWith(".safetensors"))
        .sort()
        .map((name) => join(path, name));
  if (files.length === 0) return null;
  const sums: string[] = [];
  for (const file of files) {
    const hash = createHash("sha256");
    await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), hash);
    sums.push(`${basename(file)} ${hash.digest("hex")}`);
  }
  if (sums.length === 1) return sums[0]!.split(" ").at(-1)!;
  return createHash("sha256").update(sums.join("\n")).digest("hex");
}
