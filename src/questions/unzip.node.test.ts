import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeZip, temporaryFolder, type ZipEntry } from "../../test/data-files.ts";
import { SqlEnvError } from "../errors.ts";
import { random } from "../random.ts";
import { unzip } from "./unzip.node.ts";

// Made with Info-ZIP: a file, a symbolic link to /etc/passwd, an encrypted file.
const PLAIN =
  "UEsDBAoAAAAAABImb10HoerdAgAAAAIAAAAHAAAAdC9hLnR4dGEKUEsBAh4DCgAAAAAAEiZvXQeh6t0CAAAAAgAAAAcAAAAAAAAAAQAAAKSBAAAAAHQvYS50eHRQSwUGAAAAAAEAAQA1AAAAJwAAAAAA";
const LINK =
  "UEsDBAoAAAAAABImb10KuR8pCwAAAAsAAAAEAAAAbGluay9ldGMvcGFzc3dkUEsBAh4DCgAAAAAAEiZvXQq5HykLAAAACwAAAAQAAAAAAAAAAAAAAP+hAAAAAGxpbmtQSwUGAAAAAAEAAQAyAAAALQAAAAAA";
const SECRET =
  "UEsDBAoACQAAABImb10HoerdDgAAAAIAAAAHAAAAdC9hLnR4dM6JbOQJjI8GqN7V5+SvUEsHCAeh6t0OAAAAAgAAAFBLAQIeAwoACQAAABImb10HoerdDgAAAAIAAAAHAAAAAAAAAAEAAACkgQAAAAB0L2EudHh0UEsFBgAAAAABAAEANQAAAEMAAAAAAA==";

function files(archive: Uint8Array, maxBytes?: number): [string, string][] {
  const path = join(temporaryFolder(), "a.zip");
  writeFileSync(path, archive);
  return Array.from(unzip(path, maxBytes === undefined ? {} : { maxBytes }), ({ path, bytes }) => [
    path,
    new TextDecoder().decode(bytes),
  ]);
}

test("reads stored and deflated files, not folders", () => {
  expect(files(Buffer.from(PLAIN, "base64"))).toEqual([["t/a.txt", "a\n"]]);
  const mixed = makeZip([
    { name: "d/" },
    { name: "d/x.txt", data: "x".repeat(9999) },
    { name: "ü.txt", data: "u", method: 0 },
    { name: "empty" },
  ]);
  expect(files(mixed)).toEqual([
    ["d/x.txt", "x".repeat(9999)],
    ["ü.txt", "u"],
    ["empty", ""],
  ]);
});

test.each(["../evil", "a/../../evil", "/etc/evil", "C:/evil", "..\\evil"])("refuses the path %s", (name) => {
  expect(() => files(makeZip([{ name, data: "x" }]))).toThrow(/unsafe path/);
});

test("refuses links, encryption, unknown packing and zip64", () => {
  expect(() => files(Buffer.from(LINK, "base64"))).toThrow(/holds a link: link/);
  expect(() => files(Buffer.from(SECRET, "base64"))).toThrow(/encrypted: t\/a\.txt/);
  expect(() => files(makeZip([{ name: "a", data: "x", method: 12 }]))).toThrow(/unknown way: a, method 12/);
  expect(() => files(makeZip([{ name: "a", data: "x", claimedSize: 0xffffffff }]))).toThrow(/zip64/);
});

test("refuses bombs: by the sizes they declare, and by what they inflate to when those lie", () => {
  const megabyte: ZipEntry = { name: "big", data: new Uint8Array(1_000_000) };
  expect(() => files(makeZip([megabyte, { ...megabyte, name: "big2" }]), 1_500_000)).toThrow(
    /more than allowed: 1500000 bytes/,
  );
  expect(() => files(makeZip([{ ...megabyte, claimedSize: 10 }]), 1_500_000)).toThrow(/damaged: big/);
  expect(() => files(makeZip([{ name: "a", data: "abc", claimedSize: 1_000_000 }]))).toThrow(/damaged: a/);
});

test("notices wrong checksums, truncation and damage", () => {
  expect(() => files(makeZip([{ name: "a", data: "abc", crc: 1 }]))).toThrow(/damaged: a/);
  const good = makeZip([
    { name: "a", data: "abc".repeat(50) },
    { name: "b", data: "b" },
  ]);
  for (let length = 0; length < good.length; length++)
    expect(() => files(good.subarray(0, length))).toThrow(SqlEnvError);
  const source = random("damage");
  for (let i = 0; i < 200; i++) {
    const bad = good.slice();
    bad[source.int(0, bad.length - 1)] = source.int(0, 255);
    try {
      files(bad);
    } catch (error) {
      expect(error).toBeInstanceOf(SqlEnvError);
    }
  }
});
