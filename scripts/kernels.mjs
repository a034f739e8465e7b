// Compiles the AssemblyScript kernels and writes them as base64 into src/lm/devices/cpu/kernels.generated.ts, which is not
// committed: plain and relaxed SIMD, each for shared memory (several threads) and for a single thread's memory.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import asc from "assemblyscript/asc";

const root = fileURLToPath(new URL("..", import.meta.url));
const source = join(root, "src/lm/devices/cpu/wasm/index.ts");
const folder = mkdtempSync(join(tmpdir(), "sqlenv-kernels-"));
const MAX_PAGES = "65536"; // 4 GiB, the maximum of a 32-bit memory

async function compile(name, flags) {
  const out = join(folder, `${name}.wasm`);
  const { error, stderr } = await asc.main([
    ...[source, "--outFile", out, "--runtime", "stub", "--importMemory", "--initialMemory", "1"],
    ...["--maximumMemory", MAX_PAGES, "--enable", "simd", "-O3", "--noAssert", ...flags],
  ]);
  if (error) throw new Error(`${name}: ${stderr.toString()}`);
  return `  ${name}: "${readFileSync(out).toString("base64")}",`;
}

const shared = ["--enable", "threads", "--sharedMemory"];
const relaxed = ["--enable", "relaxed-simd"];
const lines = [];
for (const [name, flags] of Object.entries({
  plain: [],
  relaxed,
  plainShared: shared,
  relaxedShared: [...relaxed, ...shared],
})) {
  lines.push(await compile(name, flags));
}
rmSync(folder, { recursive: true });
const text = `// Made by scripts/kernels.mjs from wasm/.\nexport const KERNELS = {\n${lines.join("\n")}\n} as const;\n`;
writeFileSync(join(root, "src/lm/devices/cpu/kernels.generated.ts"), text);
