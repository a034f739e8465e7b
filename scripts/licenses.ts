// A vite plugin that writes THIRD_PARTY_LICENSES.txt next to a page: the licences of the packages whose code or files are in
// its bundles, workers included, with the texts that those packages bring.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";

const FILE = "THIRD_PARTY_LICENSES.txt";
const LICENSE = /^(?:licen[cs]e|copying|notice)(?:[.-]|$)/i;
/** The Apache-2.0 text, for packages that only name it. */
const APACHE = fileURLToPath(new URL("../LICENSE", import.meta.url));
/** Licence notices of packages without a licence file. */
const NOTES: Readonly<Record<string, string>> = {
  "@sqlite.org/sqlite-wasm":
    "SQLite itself is in the public domain (https://sqlite.org/copyright.html). The package around it is under the Apache License 2.0.",
};

/** `also` names folders of packages whose code is in our own sources, where a bundler cannot see it. */
export function thirdPartyLicenses({ also = [] }: { also?: readonly string[] } = {}): {
  page: Plugin;
  worker: () => Plugin;
} {
  const packages = new Set<string>();
  // Workers are bundled while the page is read, so they have been seen when the page's files are written.
  const collect: Plugin["generateBundle"] = function () {
    for (const id of this.getModuleIds()) {
      const folder = packageOf(id);
      if (folder) packages.add(folder);
    }
  };
  return {
    page: {
      name: "third-party-licenses",
      apply: "build",
      buildStart: () => packages.clear(),
      generateBundle(...bundle) {
        collect.call(this, ...bundle);
        for (const folder of also) packages.add(folder);
        this.emitFile({ type: "asset", fileName: FILE, source: textOf([...packages]) });
      },
    },
    worker: () => ({ name: "third-party-licenses-of-workers", apply: "build", generateBundle: collect }),
  };
}

/** The folder of the package that a module belongs to; undefined for our own modules and for the bundler's. */
function packageOf(id: string): string | undefined {
  const path = id
    .replace(/^\0/, "")
    .replace(/[?#].*$/, "")
    .replaceAll("\\", "/");
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0];
}

function textOf(folders: readonly string[]): string {
  const sections = folders.map((folder) => {
    const { name, version, license, author } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const by = typeof author === "string" ? author : author?.name;
    const head = `${name} ${version} (${license})${by ? `, ${by}` : ""}`;
    const texts = readdirSync(folder)
      .filter((file) => LICENSE.test(file))
      .sort()
      .map((file) => readFileSync(join(folder, file), "utf8"));
    if (texts.length === 0 && license === "Apache-2.0") texts.push(readFileSync(APACHE, "utf8"));
    if (NOTES[name]) texts.unshift(NOTES[name]);
    if (texts.length === 0) throw new Error(`${name} brings no licence text; add one to scripts/licenses.ts`);
    return `${head}\n\n${texts.map((text) => text.replaceAll("\r", "").trim()).join("\n\n")}\n`;
  });
  return `This page contains code of others, under these licences.\n\n${sections.sort().join(`\n${"-".repeat(80)}\n\n`)}`;
}
