import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { makeTar } from "../../../../test/helpers/data-files.ts";
import { SqlEnvError } from "../../../errors.ts";
import { UnpackBudget } from "./archive.ts";
import { untar } from "./untar.ts";

// Made with GNU tar, then gzip: t/a.txt and a file thirty folders deep, in both formats for long names.
const PAX =
  "H4sIAAAAAAACA+3WS27CMBAGYK9zCp8Axg/G8YI9y17BAosiAUGJkXJ8nO6atiBQsXj838JW4k0c+9dMmn6EfhHDKrbdNExSn8S/o4yt/Zqz8UzkjFCGSTsmO7xX+UkL2YsCjl0Kbf4U8Z60lyFtdnGunLdO1UrxRLt8Ap59ZUguf1k0tq5rXwl4fuleob8m/6RH+deaWUgqmf+2ac7+hUvr4809iYAYv3n+t81+fd/hUv6NnX3PvyFHDvW/BOVIHkL6nJe4CLcM+7CLQ4UampGfnQr7vAH2syr3Mcs/+xjE/KHzTzTOv2FLqP8lrGI8IB8AAAAAAAAAAAAAAACv4wTnimTYACgAAA==";
const GNU =
  "H4sIAAAAAAACA+3WTQ7CIBCGYdaeghOUX+nWA3AJEhtj1NZUTDy+1JW6sKtWG99nwSSwYzJ8ZJWqfMtiSroI3j9q8V4LK4wL2tZB+2Hf6DoEIbWYwfWSUy+l6Lvu4y2MnS9UWgn8sUpVahO7dhf37eFL82+9eXoLhvk3oRQZmf/JZXUszf+9pU2nZvJgwiz9H8//9Wv+O+u8Jv/nsG2aM18AAAAAAAAAAAAAAFi+O3MfDB0AKAAA";

/** Reads an archive in chunks of `piece` bytes and returns its files. */
async function files(archive: Uint8Array, piece = 700, maxBytes = 1_000_000): Promise<[string, string][]> {
  async function* pieces() {
    for (let at = 0; at < archive.length; at += piece) yield archive.subarray(at, at + piece);
  }
  const found: [string, string][] = [];
  for await (const { path, content } of untar(pieces(), new UnpackBudget(maxBytes))) {
    const parts: Uint8Array[] = [];
    for await (const part of content) parts.push(part);
    found.push([path, Buffer.concat(parts).toString()]);
  }
  return found;
}

test("reads short and long names in all formats, in chunks of any length", async () => {
  const deep = `t/${"long/".repeat(30)}name.txt`;
  for (const packed of [PAX, GNU]) {
    for (const piece of [1, 511, 100_000]) {
      expect(await files(gunzipSync(Buffer.from(packed, "base64")), piece)).toEqual([
        ["t/a.txt", "a\n"],
        [deep, "deep\n"],
      ]);
    }
  }
  const plain = makeTar([
    { name: "./x/", type: "5" },
    { name: "./x/empty" },
    { name: "x/block", data: "b".repeat(512) },
  ]);
  expect(await files(plain)).toEqual([
    ["x/empty", ""],
    ["x/block", "b".repeat(512)],
  ]);
});

test.each([
  ...["../evil", "a/../../evil", "/etc/evil", "C:\\evil", "..\\evil", "a\0b/../evil"],
  ...["dev.json:stream", "aux", "a/NUL.txt", "com1.sqlite", "Lpt9", "a./b", "ends with space ", "..."],
  ...["x".repeat(256), "ü".repeat(128), "x/".repeat(600)],
])("refuses the path %s", async (name) => {
  const long = [{ name: "././@LongLink", type: "L", data: `${name}\0` }, { name: "innocent" }];
  const pax = [{ name: "PaxHeader", type: "x", data: paxRecord("path", name) }, { name: "innocent" }];
  if (!name.includes("\0")) await expect(files(makeTar(long))).rejects.toThrow(/unsafe path/);
  await expect(files(makeTar(pax))).rejects.toThrow(/unsafe path/);
});

function paxRecord(key: string, value: string | number): string {
  const rest = ` ${key}=${value}\n`;
  const length = Buffer.byteLength(rest);
  const digits = String(length + String(length + 2).length).length;
  return `${length + digits}${rest}`;
}

test("a size in a pax header is used, and a damaged one is refused", async () => {
  const hidden = makeTar([{ name: "hidden", data: "evil" }]).subarray(0, 1024);
  const archive = makeTar([
    { name: "PaxHeader", type: "x", data: paxRecord("size", 1024) },
    { name: "outer", claimedSize: 0, data: hidden },
    { name: "last", data: "z" },
  ]);
  expect((await files(archive)).map(([path, text]) => [path, text.length])).toEqual([
    ["outer", 1024],
    ["last", 1],
  ]);
  const broken = (value: string) => makeTar([{ name: "h", type: "x", data: paxRecord("size", value) }, { name: "a" }]);
  for (const value of ["-1", "1e3", "", "99999999999999999999"])
    await expect(files(broken(value))).rejects.toThrow(/damaged pax header/);
  await expect(files(broken("999999999"))).rejects.toThrow(/unpacks to more than allowed/);
  const global = makeTar([
    { name: "h", type: "g", data: paxRecord("size", 5) },
    { name: "a", data: "12345" },
  ]);
  await expect(files(global)).rejects.toThrow(/gives all files one name or size/);
  const sparse = makeTar([{ name: "h", type: "x", data: paxRecord("GNU.sparse.major", 1) }, { name: "a" }]);
  await expect(files(sparse)).rejects.toThrow(/sparse/);
});

test("refuses links, devices and other special entries", async () => {
  for (const type of ["1", "2"])
    await expect(files(makeTar([{ name: "link", type }]))).rejects.toThrow(/holds a link: link/);
  for (const type of ["3", "6", "S"])
    await expect(files(makeTar([{ name: "odd", type }]))).rejects.toThrow(/other than files: odd/);
});

test("all bytes count, also those of headers and skipped entries", async () => {
  const archive = makeTar([
    { name: "folder/", type: "5", data: "x".repeat(50_000) },
    { name: "a", data: "x".repeat(50_000) },
  ]);
  await expect(files(archive, 512, 90_000)).rejects.toThrow(/unpacks to more than allowed: 90000 bytes/);
  await expect(files(makeTar([{ name: "h", type: "x", claimedSize: 2_000_000 }]), 512, 1e9)).rejects.toThrow(
    /too long/,
  );
});

test("detects truncation and damage", async () => {
  const good = makeTar([{ name: "a", data: "x".repeat(2000) }]);
  for (const length of [0, 100, 511, 600, 2047])
    await expect(files(good.subarray(0, length))).rejects.toThrow(SqlEnvError);
  const bad = good.slice();
  bad[3] = 65;
  await expect(files(bad)).rejects.toThrow(/not a tar archive, or a damaged one/);
  await expect(files(makeTar([{ name: "h", type: "x", data: "999 path=a\n" }]))).rejects.toThrow(/damaged pax header/);
});
