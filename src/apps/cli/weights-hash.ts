// Which weights a result was made with, as one number.
import { createHash } from "node:crypto";
import { createReadStream, readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";

/** SHA-256 of a model's weights: of the one file there is, or of the list of several files' names and sums; null without any. */
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
