// Bundles test/devices/device-suite.ts into dist/device-suite.js, which runs under Node alone: node scripts/device-suite.mjs
import { fileURLToPath } from "node:url";
import { build } from "vite";

const path = (file) => fileURLToPath(new URL(`../${file}`, import.meta.url));
await build({
  configFile: false,
  logLevel: "warn",
  resolve: { alias: { vitest: path("test/devices/plain.ts") } },
  ssr: { noExternal: true },
  build: {
    ssr: path("test/devices/device-suite.ts"),
    outDir: path("dist"),
    emptyOutDir: false,
    target: "node20",
    minify: false,
    rollupOptions: { output: { entryFileNames: "device-suite.js" } },
  },
});
