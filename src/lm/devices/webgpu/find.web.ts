// Whether a page's worker can use a GPU, found out before the device's code is loaded.

/** The part of the browser's WebGPU that is needed here; TypeScript's libraries have none of it in workers. */
interface Gpu {
  requestAdapter(options: { readonly powerPreference: "high-performance" }): Promise<{
    readonly info?: { readonly vendor: string; readonly architecture: string; readonly isFallbackAdapter?: boolean };
    readonly isFallbackAdapter?: boolean;
  } | null>;
}

/** Names of adapters that compute on the CPU, for browsers that do not say so otherwise. */
export const SOFTWARE_ADAPTERS = /swiftshader|llvmpipe|lavapipe|basic render/i;

/** Why no GPU can be used here; undefined if one can. `software` accepts adapters that compute on the CPU. */
export async function whyNoGpu({ software = false } = {}): Promise<string | undefined> {
  const { gpu } = (globalThis.navigator ?? {}) as { readonly gpu?: Gpu };
  if (!gpu)
    return globalThis.isSecureContext === false ? "WebGPU needs https or localhost" : "no WebGPU in this browser";
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  if (!adapter) return "WebGPU found no GPU";
  const { vendor = "", architecture = "", isFallbackAdapter } = adapter.info ?? {};
  const name = [vendor, architecture].filter(Boolean).join(" ");
  const isSoftware = isFallbackAdapter ?? adapter.isFallbackAdapter ?? false;
  if (!software && (isSoftware || SOFTWARE_ADAPTERS.test(name))) return `WebGPU is only emulated here (${name})`;
  if (!globalThis.crossOriginIsolated) return "the page was served without isolation headers";
  return undefined;
}
