import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { makeTar } from "../../test/data-files.ts";
import { SqlEnvError } from "../errors.ts";
import { untar } from "./untar.ts";

// Made with GNU tar: t/a.txt and a file thirty folders deep, in both formats for long names, then gzip.
const PAX =
  "H4sIAAAAAAACA+3WS27CMBAGYK9zCp8Axg/G8YI9y17BAosiAUGJkXJ8nO6atiBQsXj838JW4k0c+9dMmn6EfhHDKrbdNExSn8S/o4yt/Zqz8UzkjFCGSTsmO7xX+UkL2YsCjl0Kbf4U8Z60lyFtdnGunLdO1UrxRLt8Ap59ZUguf1k0tq5rXwl4fuleob8m/6RH+deaWUgqmf+2ac7+hUvr4809iYAYv3n+t81+fd/hUv6NnX3PvyFHDvW/BOVIHkL6nJe4CLcM+7CLQ4UampGfnQr7vAH2syr3Mcs/+xjE/KHzTzTOv2FLqP8lrGI8IB8AAAAAAAAAAAAAAACv4wTnimTYACgAAA==";
const GNU =
  "H4sIAAAAAAACA+3WTQ7CIBCGYdaeghOUX+nWA3AJEhtj1NZUTDy+1JW6sKtWG99nwSSwYzJ8ZJWqfMtiSroI3j9q8V4LK4wL2tZB+2Hf6DoEIbWYwfWSUy+l6Lvu4y2MnS9UWgn8sUpVahO7dhf37eFL82+9eXoLhvk3oRQZmf/JZXUszf+9pU2nZvJgwiz9H8//9Wv+O+u8Jv/nsG2aM18AAAAAAAAAAAAAAFi+O3MfDB0AKAAA";

function files(archive: Uint8Array): [string, string][] {
  return Array.from(untar(archive), ({ path, bytes }) => [path, new TextDecoder().decode(bytes)]);
}

test("reads short and long names in all formats", () => {
  const deep = `t/${"long/".repeat(30)}name.txt`;
  for (const packed of [PAX, GNU]) {
    expect(files(gunzipSync(Buffer.from(packed, "base64")))).toEqual([
      ["t/a.txt", "a\n"],
      [deep, "deep\n"],
    ]);
  }
  const plain = makeTar([
    { name: "./x/", type: "5" },
    { name: "./x/empty" },
    { name: "x/block", data: "b".repeat(512) },
  ]);
  expect(files(plain)).toEqual([
    ["x/empty", ""],
    ["x/block", "b".repeat(512)],
  ]);
});

test.each(["../evil", "a/../../evil", "/etc/evil", "C:\\evil", "..\\evil"])("refuses the path %s", (name) => {
  expect(() => files(makeTar([{ name }]))).toThrow(/unsafe path/);
  const long = [{ name: "././@LongLink", type: "L", data: `${name}\0` }, { name: "innocent" }];
  expect(() => files(makeTar(long))).toThrow(/unsafe path/);
});

test("refuses links, devices and other oddities", () => {
  for (const type of ["1", "2"]) expect(() => files(makeTar([{ name: "link", type }]))).toThrow(/holds a link: link/);
  for (const type of ["3", "6", "S"])
    expect(() => files(makeTar([{ name: "odd", type }]))).toThrow(/other than files: odd/);
});

test("notices truncation and damage", () => {
  const good = makeTar([{ name: "a", data: "x".repeat(2000) }]);
  for (const length of [0, 100, 511, 600, 2047]) expect(() => files(good.subarray(0, length))).toThrow(SqlEnvError);
  const bad = good.slice();
  bad[3] = 65;
  expect(() => files(bad)).toThrow(/not a tar archive, or a damaged one/);
  expect(() => files(makeTar([{ name: "h", type: "x", data: "999 path=a\n" }]))).toThrow(/damaged pax header/);
});
