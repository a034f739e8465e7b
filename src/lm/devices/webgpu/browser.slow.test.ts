// Runs the device suite on WebGPU in a worker of a real Chromium: test/devices/browser-suite.ts.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { describe, expect, test } from "vitest";
import type { Report } from "../../../../test/devices/browser-suite.ts";
import { ISOLATED, missingBrowserGpu, startGpuChromium } from "../../../../test/helpers/browser-gpu.ts";
import { serveHandler } from "../../../../test/helpers/chromium.ts";

const missing = await missingBrowserGpu();
const COMPILING_MS = 600_000; // a software adapter compiles each kernel for a good part of a second

/** The suite as one module for a worker. */
async function bundle(): Promise<string> {
  const path = (file: string) => fileURLToPath(new URL(`../../../../test/devices/${file}`, import.meta.url));
  const outDir = mkdtempSync(join(tmpdir(), "sqlenv-browser-suite-"));
  try {
    await build({
      configFile: false,
      logLevel: "warn",
      resolve: { alias: { vitest: path("plain.ts") } },
      build: {
        outDir,
        emptyOutDir: true,
        target: "es2023",
        minify: false,
        lib: { entry: path("browser-suite.ts"), formats: ["es"], fileName: () => "suite.js" },
      },
    });
    return readFileSync(join(outDir, "suite.js"), "utf8");
  } finally {
    rmSync(outDir, { recursive: true, force: true });
  }
}

describe.skipIf(missing !== undefined)(`WebGPU in Chromium${missing ? ` (skipped: ${missing})` : ""}`, () => {
  test(
    "the device suite passes in a worker, and an emulated GPU is not taken for a real one",
    async () => {
      const suite = await bundle();
      const site = await serveHandler(async ({ url }) => {
        const isScript = url.endsWith(".js");
        const headers = { "content-type": isScript ? "text/javascript" : "text/html", ...ISOLATED };
        return new Response(isScript ? suite : "<title>device suite</title>", { headers });
      });
      const browser = await startGpuChromium();
      try {
        const page = await browser.newPage();
        await page.goto(site.url);
        const report = await page.evaluate<Report>(
          () =>
            new Promise((resolve, reject) => {
              const worker = new Worker("suite.js", { type: "module" });
              worker.onmessage = ({ data }) => resolve(data);
              worker.onerror = ({ message }) => reject(new Error(message));
            }),
        );
        expect(report.failed).toEqual([]);
        expect(report.passed).toBeGreaterThan(100);
        expect(report.adapter).toMatch(/^webgpu google swiftshader \(software\)$/);
        expect(report.real).toMatch(/only emulated here \(google swiftshader\)/);
      } finally {
        await browser.close();
        site.close();
      }
    },
    COMPILING_MS,
  );
});
