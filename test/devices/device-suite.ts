// The device suite on a CUDA GPU, as a separate program: `node dist/device-suite.js`. Bundled by scripts/device-suite.mjs, with
// plain.ts as the test runner, so that it needs only Node, the driver, cuBLAS and NVRTC.
import { pathToFileURL } from "node:url";
import { describe } from "vitest";
import { createCuda } from "../../src/lm/devices/cuda/create.node.ts";
import { REFERENCES } from "../reference/read.ts";
import { againstCpu } from "./against.ts";
import { runAll } from "./plain.ts";
import { againstTransformers } from "./references.ts";
import { deviceSuite } from "./suite.ts";

// Single precision: as the CPU's, with sums in another order. bf16 has 8 bits: 2⁻⁹ per rounding, which add up along a chain.
const FLOAT = { kernel: 2e-5, chain: 5e-5, gradient: 1e-4, loss: 1e-5, logprob: 1e-4 };
const BF16 = { kernel: 1e-2, chain: 2e-2, gradient: 3e-2, loss: 5e-3, logprob: 5e-2 };

// --only=suite, transformers, fp32 or bf16 runs a part, --match=… tests by their names; --quiet leaves the measured errors out.
const quiet = process.argv.includes("--quiet");
const option = (name: string) => process.argv.find((arg) => arg.startsWith(`--${name}=`))?.slice(name.length + 3);
const only = option("only");
const wanted = new RegExp(option("match") ?? "");
const note = (line: string) => void (quiet || console.log(line));
const device = createCuda();
console.log(
  `${device.variant}; ${device.gpu.multiprocessors} multiprocessors, ${Math.round(device.gpu.memory / 2 ** 20)} MiB`,
);
const { capability } = device.gpu;
device.close();

const wants = (part: string) => only === undefined || only === part;
if (wants("suite")) {
  deviceSuite("fp32", () => createCuda({ precision: "fp32" }), { forward: 1e-5, backward: 2e-5, optimizer: 2e-6 });
}
describe("against transformers", () => {
  if (!wants("transformers")) return;
  const root = pathToFileURL("test/reference/"); // run from the project's folder
  const models = REFERENCES.filter((name) => !/^llama-/.test(name)); // heads of 8 are not a multiple of a tensor core's 16
  const [float, bf16] = [
    { logits: 2e-5, gradient: 1e-4 },
    { logits: 3e-2, gradient: 1e-1 },
  ];
  againstTransformers("fp32", () => createCuda({ precision: "fp32" }), REFERENCES, float, root, note);
  if (capability >= 80) againstTransformers("bf16", () => createCuda({ precision: "bf16" }), models, bf16, root, note);
});
describe("against the CPU", () => {
  if (wants("fp32")) againstCpu("fp32", () => createCuda({ precision: "fp32" }), FLOAT, note);
  if (wants("bf16") && capability >= 80) againstCpu("bf16", () => createCuda({ precision: "bf16" }), BF16, note);
});
const start = performance.now();
const { passed, failed } = await runAll((name, error) => console.log(`FAILED ${name}: ${error.slice(0, 600)}`), wanted);
console.log(`${passed} passed, ${failed.length} failed in ${((performance.now() - start) / 1000).toFixed(0)} s`);
process.exitCode = failed.length > 0 ? 1 : 0;
