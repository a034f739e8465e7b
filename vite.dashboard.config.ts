import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { thirdPartyLicenses } from "./scripts/licenses.ts";

/** The dashboard's page, into dist/web/dashboard: one script, one style sheet, addresses relative to the page. */
export default defineConfig({
  root: fileURLToPath(new URL("./src/apps/dashboard/web", import.meta.url)),
  base: "./",
  build: {
    outDir: fileURLToPath(new URL("./dist/web/dashboard", import.meta.url)),
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
  plugins: [thirdPartyLicenses().page],
});
