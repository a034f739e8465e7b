import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { writeFileWhole, writeFolderWhole } from "./atomic-write.node.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sqlenv-write-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const read = (...path: string[]) => readFileSync(join(folder, ...path), "utf8");
/** Runs JavaScript that has `write`, a file's path, and one mebibyte of text. */
const run = (command: string, args: readonly string[], code: string) => {
  const module = new URL("../../dist/io/atomic-write.node.js", import.meta.url).href;
  const script = `
    import { writeFileWhole, writeFolderWhole } from ${JSON.stringify(module)};
    import { writeFileSync } from "node:fs";
    const [path, text] = [${JSON.stringify(join(folder, "x"))}, "a".repeat(2 ** 20)];
    try { ${code}; console.log("written"); } catch (error) { console.log(error.code); }`;
  return spawnSync(command, [...args, process.execPath, "--input-type=module", "-e", script], { encoding: "utf8" });
};

test("a file has its old content or its new one", () => {
  const path = join(folder, "x");
  writeFileWhole(path, "old");
  writeFileWhole(path, new TextEncoder().encode("new"));
  expect(read("x")).toBe("new");
  expect(() => writeFileWhole(join(folder, "no", "x"), "")).toThrow(/ENOENT/);
  expect(readdirSync(folder)).toEqual(["x"]);
});

describe("a folder", () => {
  test("is replaced atomically", async () => {
    const path = join(folder, "x");
    await writeFolderWhole(path, (aside) => writeFileSync(join(aside, "first"), "1"));
    await writeFolderWhole(path, async (aside) => {
      mkdirSync(join(aside, "inner"));
      writeFileSync(join(aside, "inner", "second"), "2");
      expect(read("x", "first")).toBe("1"); // until the new one is complete
    });
    expect(readdirSync(path, { recursive: true }).sort()).toEqual(["inner", "inner/second"]);
    expect(readdirSync(folder)).toEqual(["x"]);
  });

  test("is unchanged when filling the new one fails", async () => {
    const path = join(folder, "x");
    await writeFolderWhole(path, (aside) => writeFileSync(join(aside, "first"), "1"));
    const fails = writeFolderWhole(path, () => {
      throw new Error("no");
    });
    await expect(fails).rejects.toThrow("no");
    expect(read("x", "first")).toBe("1");
    expect(readdirSync(folder)).toEqual(["x"]);
  });
});

const hasShell = existsSync("/bin/sh");
test.skipIf(!hasShell).each([
  ["file", "writeFileWhole(path, text)"],
  ["folder", `await writeFolderWhole(path, (aside) => writeFileSync(aside + "/y", text))`],
])("no file is left where a system limit interrupts a %s", (_, code) => {
  const { stdout, stderr } = run("/bin/sh", ["-c", 'ulimit -f 64; exec "$@"', "sh"], code);
  expect(stdout, stderr).toBe("EFBIG\n");
  expect(readdirSync(folder)).toEqual([]);
});

test("files are written under Node's permission model, which has no fsync", () => {
  const flag = process.allowedNodeEnvironmentFlags.has("--permission") ? "--permission" : "--experimental-permission";
  const { stdout, stderr } = run(
    "env",
    [`NODE_OPTIONS=${flag} --allow-fs-read=* --allow-fs-write=*`],
    "writeFileWhole(path, text)",
  );
  expect(stdout, stderr).toBe("written\n");
  expect(read("x")).toHaveLength(2 ** 20);
});
