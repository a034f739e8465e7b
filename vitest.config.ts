import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const src = fileURLToPath(new URL("./src", import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^sqlenv$/, replacement: `${src}/index.ts` },
      { find: /^sqlenv\/(.+)$/, replacement: `${src}/$1/index.ts` },
    ],
  },
  test: { include: ["src/**/*.test.ts", "test/**/*.test.ts"], testTimeout: 60_000 },
});
