// Converting weights to bf16 must take no JavaScript heap, however large the embedding.
import { execFileSync } from "node:child_process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, test } from "vitest";

test("16 million numbers are converted in a heap of 40 MB", () => {
  const module = pathToFileURL(fileURLToPath(new URL("../../../../dist/lm/devices/cuda/bf16.js", import.meta.url)));
  const code = `import { bf16ToFloats, floatsToBf16 } from ${JSON.stringify(module.href)};
    const back = bf16ToFloats(floatsToBf16(new Float32Array(16_000_000).fill(1.5)));
    console.log(back.length, back[0], back.at(-1));`;
  const out = execFileSync(process.execPath, ["--max-old-space-size=40", "--input-type=module", "-e", code]);
  expect(out.toString().trim()).toBe("16000000 1.5 1.5");
});
