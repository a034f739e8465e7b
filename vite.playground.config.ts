// The playground as a static site: relative addresses, so that it works from any folder of a plain file server.
import { cpSync, existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { thirdPartyLicenses } from "./scripts/licenses.ts";

const root = fileURLToPath(new URL(".", import.meta.url));
const site = join(root, "dist/web/playground");
const SQLITE = "sqlite-wasm/jswasm/sqlite3-bundler-friendly.mjs";

// The kernels contain parts of AssemblyScript's library.
const licenses = thirdPartyLicenses({ also: [join(root, "node_modules/assemblyscript")] });
const checks = { pluginTimings: false }; // of no interest to who builds

export default defineConfig({
  root: join(root, "src/apps/playground/web"),
  base: "./",
  resolve: {
    // The package's own entry brings a second worker that nobody here starts.
    alias: { "@sqlite.org/sqlite-wasm": join(root, "node_modules/@sqlite.org/sqlite-wasm", SQLITE) },
  },
  publicDir: false,
  build: {
    outDir: site,
    emptyOutDir: true,
    target: "es2023",
    cssTarget: ["chrome123", "firefox120", "safari17.5"], // the first that know light-dark()
    rolldownOptions: { checks },
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0, // what is inline would need a hole in the content policy
    reportCompressedSize: false,
  },
  worker: { format: "es", rolldownOptions: { checks }, plugins: () => [licenses.worker()] },
  plugins: [licenses.page, { name: "bundled-model", closeBundle: copyModel }],
});

/** The bundled model beside the page, where there is one. */
function copyModel(): void {
  const model = join(root, "models/starter");
  if (!existsSync(model)) return;
  cpSync(model, join(site, "model"), { recursive: true });
  writeFileSync(join(site, "model/files.json"), JSON.stringify(readdirSync(model))); // what the page may request
}
