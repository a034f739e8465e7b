// WebGPU in a real Chromium, whose SwiftShader stands in for a GPU.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Browser, chromium } from "playwright-core";
import { CHROMIUM } from "./chromium.ts";

/** Headers that make a page cross-origin isolated. */
export const ISOLATED = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
} as const;

/** Starts Chromium with WebGPU on SwiftShader, which it does not offer to pages otherwise. */
export function startGpuChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM!, args: ["--enable-unsafe-webgpu"] });
}

/** Why there is no WebGPU in Chromium here, or undefined if there is. */
export async function missingBrowserGpu(): Promise<string | undefined> {
  if (!CHROMIUM) return "no chromium; apt-get install chromium";
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html", ...ISOLATED }).end("<title>empty</title>");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await startGpuChromium();
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const hasGpu = await page.evaluate(async () => {
      const { gpu } = navigator as { gpu?: { requestAdapter(): Promise<unknown> } };
      return Boolean(await gpu?.requestAdapter());
    });
    return hasGpu ? undefined : "this chromium has no WebGPU";
  } finally {
    await browser.close();
    server.close();
  }
}
