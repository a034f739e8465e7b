// Compiles the AssemblyScript kernels and writes them as base64 into src/lm/devices/cpu/kernels.generated.ts, which is not
// committed: plain and relaxed SIMD, each for shared memory (several threads) and for a single thread's memory. The file
// names the hash of what it was made from, and is not made again while that is the same.
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import asc from "assemblyscript/asc";

const root = fileURLToPath(new URL("..", import.meta.url));
const sources = join(root, "src/lm/devices/cpu/wasm");
const out = join(root, "src/lm/devices/cpu/kernels.generated.ts");
const MAX_PAGES = "65536"; // 4 GiB, the maximum of a 32-bit memory

const head = `// Made by scripts/kernels.mjs from wasm/, sha256 ${hashOfInputs()}.\n`;
if (!existsSync(out) || !readFileSync(out, "utf8").startsWith(head)) writeFileSync(out, head + (await compileAll()));

/** Of the sources, this script, and the compiler's version. */
function hashOfInputs() {
  const files = readdirSync(sources, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const hash = createHash("sha256").update(`${asc.version ?? ""}`);
  for (const file of [...files.sort().map((name) => join(sources, name)), fileURLToPath(import.meta.url)])
    hash.update(readFileSync(file)).update("\0");
  return hash.digest("hex");
}

async function compileAll() {
  const folder = mkdtempSync(join(tmpdir(), "sqlenv-kernels-"));
  const shared = ["--enable", "threads", "--sharedMemory"];
  const relaxed = ["--enable", "relaxed-simd"];
  const variants = { plain: [], relaxed, plainShared: shared, relaxedShared: [...relaxed, ...shared] };
  const lines = [];
  for (const [name, flags] of Object.entries(variants)) lines.push(await compile(name, flags, folder));
  rmSync(folder, { recursive: true });
  return `export const KERNELS = {\n${lines.join("\n")}\n} as const;\n`;
}

async function compile(name, flags, folder) {
  const file = join(folder, `${name}.wasm`);
  const { error, stderr } = await asc.main([
    ...[join(sources, "index.ts"), "--outFile", file, "--runtime", "stub", "--importMemory", "--initialMemory", "1"],
    ...["--maximumMemory", MAX_PAGES, "--enable", "simd", "-O3", "--noAssert", ...flags],
  ]);
  if (error) throw new Error(`${name}: ${stderr.toString()}`);
  return `  ${name}: "${readFileSync(file).toString("base64")}",`;
}
