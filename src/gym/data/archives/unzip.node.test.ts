import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeZip, temporaryFolder, type ZipEntry } from "../../../../test/helpers/data-files.ts";
import { SqlEnvError } from "../../../errors.ts";
import { random } from "../../../random.ts";
import { UnpackBudget } from "./archive.ts";
import { unzip } from "./unzip.node.ts";

// Made with Info-ZIP: a file, a symbolic link to /etc/passwd, an encrypted file.
const PLAIN =
  "UEsDBAoAAAAAABImb10HoerdAgAAAAIAAAAHAAAAdC9hLnR4dGEKUEsBAh4DCgAAAAAAEiZvXQeh6t0CAAAAAgAAAAcAAAAAAAAAAQAAAKSBAAAAAHQvYS50eHRQSwUGAAAAAAEAAQA1AAAAJwAAAAAA";
const LINK =
  "UEsDBAoAAAAAABImb10KuR8pCwAAAAsAAAAEAAAAbGluay9ldGMvcGFzc3dkUEsBAh4DCgAAAAAAEiZvXQq5HykLAAAACwAAAAQAAAAAAAAAAAAAAP+hAAAAAGxpbmtQSwUGAAAAAAEAAQAyAAAALQAAAAAA";
const SECRET =
  "UEsDBAoACQAAABImb10HoerdDgAAAAIAAAAHAAAAdC9hLnR4dM6JbOQJjI8GqN7V5+SvUEsHCAeh6t0OAAAAAgAAAFBLAQIeAwoACQAAABImb10HoerdDgAAAAIAAAAHAAAAAAAAAAEAAACkgQAAAAB0L2EudHh0UEsFBgAAAAABAAEANQAAAEMAAAAAAA==";

async function files(archive: Uint8Array, maxBytes = 10_000_000): Promise<[string, string][]> {
  const path = join(temporaryFolder(), "a.zip");
  writeFileSync(path, archive);
  const found: [string, string][] = [];
  for await (const { path: name, content } of unzip(path, new UnpackBudget(maxBytes))) {
    const parts: Uint8Array[] = [];
    for await (const part of content) parts.push(part);
    found.push([name, Buffer.concat(parts).toString()]);
  }
  return found;
}

test("reads stored and deflated files, not folders", async () => {
  expect(await files(Buffer.from(PLAIN, "base64"))).toEqual([["t/a.txt", "a\n"]]);
  const mixed = makeZip([
    { name: "d/" },
    { name: "d/x.txt", data: "x".repeat(9999) },
    { name: "ü.txt", data: "u", method: 0 },
    { name: "empty" },
  ]);
  expect(await files(mixed)).toEqual([
    ["d/x.txt", "x".repeat(9999)],
    ["ü.txt", "u"],
    ["empty", ""],
  ]);
});

test.each(["../evil", "a/../../evil", "/etc/evil", "C:/evil", "..\\evil", "a:b", "x/aux.db", "a\0b"])(
  "refuses the path %s",
  async (name) => {
    await expect(files(makeZip([{ name, data: "x" }]))).rejects.toThrow(/unsafe path/);
  },
);

test("refuses links, encryption and unknown compression methods", async () => {
  await expect(files(Buffer.from(LINK, "base64"))).rejects.toThrow(/holds a link: link/);
  await expect(files(Buffer.from(SECRET, "base64"))).rejects.toThrow(/encrypted: t\/a\.txt/);
  await expect(files(makeZip([{ name: "a", data: "x", method: 12 }]))).rejects.toThrow(/unknown way: a, method 12/);
});

test("reads zip64", async () => {
  const archive = makeZip([
    { name: "a", data: "x".repeat(5_000), zip64: true },
    { name: "b", data: "y" },
  ]);
  expect(await files(archive)).toEqual([
    ["a", "x".repeat(5_000)],
    ["b", "y"],
  ]);
});

test("refuses zip bombs: by declared sizes, and by inflated size where those are false", async () => {
  const megabyte: ZipEntry = { name: "big", data: new Uint8Array(1_000_000) };
  await expect(files(makeZip([megabyte, { ...megabyte, name: "big2" }]), 1_500_000)).rejects.toThrow(
    /more than allowed: 1500000 bytes/,
  );
  await expect(files(makeZip([{ ...megabyte, claimedSize: 10 }]), 1_500_000)).rejects.toThrow(/damaged.*: big/);
  await expect(files(makeZip([{ name: "a", data: "abc", claimedSize: 1_000_000 }]))).rejects.toThrow(/damaged.*: a/);
});

test("detects wrong checksums, truncation and damage", async () => {
  await expect(files(makeZip([{ name: "a", data: "abc", crc: 1 }]))).rejects.toThrow(/damaged.*: a/);
  const good = makeZip([
    { name: "a", data: "abc".repeat(50) },
    { name: "b", data: "b" },
  ]);
  for (let length = 0; length < good.length; length++)
    await expect(files(good.subarray(0, length))).rejects.toThrow(SqlEnvError);
  const source = random("damage");
  for (let i = 0; i < 200; i++) {
    const bad = good.slice();
    bad[source.int(0, bad.length - 1)] = source.int(0, 255);
    try {
      await files(bad);
    } catch (error) {
      expect(error).toBeInstanceOf(SqlEnvError);
    }
  }
});
