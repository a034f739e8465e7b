// WebGPU for tests: a real GPU, or SwiftShader, which Debian's chromium brings.
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../../src/errors.ts";
import { createWebGpu } from "../../src/lm/devices/webgpu/create.node.ts";

const SWIFTSHADER = "/usr/lib/chromium/libvk_swiftshader.so";

/** Why there is no WebGPU here, or undefined if there is. Without a GPU's driver it lets Vulkan find SwiftShader. */
export function missingWebGpu(): string | undefined {
  try {
    createRequire(import.meta.url).resolve("webgpu");
  } catch {
    return "the package webgpu is not installed";
  }
  process.env.XDG_RUNTIME_DIR ??= tmpdir(); // Vulkan complains without it
  if (!process.env.VK_ICD_FILENAMES && existsSync(SWIFTSHADER)) {
    const file = join(mkdtempSync(join(tmpdir(), "swiftshader-")), "icd.json");
    const driver = { library_path: SWIFTSHADER, api_version: "1.0.5" };
    writeFileSync(file, JSON.stringify({ file_format_version: "1.0.0", ICD: driver }));
    process.env.VK_ICD_FILENAMES = file;
  }
  try {
    createWebGpu().close();
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
