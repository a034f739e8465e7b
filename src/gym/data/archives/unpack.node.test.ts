// Unpacks archives: .xz files written by other programs, colliding paths, and one size limit for all nesting levels.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { makeTar, makeZip, temporaryFolder } from "../../../../test/helpers/data-files.ts";
import { smallDisk } from "../../../../test/helpers/small-disk.ts";
import { SqlEnvError } from "../../../errors.ts";
import { random } from "../../../random.ts";
import { UnpackBudget } from "./archive.ts";
import { unpack, unxz } from "./unpack.node.ts";

// Made with xz 5: `xz -c`, with the options in the names.
const FILES = {
  empty: "/Td6WFoAAATm1rRGAAAAABzfRCEftvN9AQAAAAAEWVo=",
  hello: "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4AAXAAxdADQZSe6N6VYKwSGwAABsFO0bO2i7kQABKBjXg7duH7bzfQEAAAAABFla",
  hello_crc32: "/Td6WFoAAAFpIt42AgAhARYAAAB0L+Wj4AAXAAxdADQZSe6N6VYKwSGwAAAAiFkLAAEkGNvMAsKQQpkNAQAAAAABWVo=",
  hello_none: "/Td6WFoAAAD/EtlBAgAhARYAAAB0L+Wj4AAXAAxdADQZSe6N6VYKwSGwAAAAASAY3wlupgZynnoBAAAAAABZWg==",
  hello_sha256:
    "/Td6WFoAAArh+wyhAgAhARYAAAB0L+Wj4AAXAAxdADQZSe6N6VYKwSGwAABm2vy93xJlpTbHzU3EWLUN48EJztwIls23cEFhbJigAwABQBh4YpPDGJtLmgEAAAAAClla",
  rows: "/Td6WFoAAATm1rRGAgAhARwAAAAQz1jM4BWKBPBdABgLHATSdDM568GlV/XEzf1/l12IKE1/paChoPGY0nCwMnPCySaaRy0vP8UfZEk5BjK27YPmMCGC7utnmX/Ao3eT7tLCCMovxLRwQ/XriJHTzwJPY567rni4Wfj28S8I7/m3VBsjXrc9ZFfNFmdtuCazg4TvlBU8pJDHiGpsLq4MTyIM8c8eWiO1gmE1wDWfgK2yAZD0QFw5sugzbDxRuLLHH9tpSV9/AbEwExje6MZBTCImnPcFrCeHEZQEr6UGUIhcZRMiGXg9nUXUcwvzRsn4zYp0SqubFT/KBF8W1Cl5C59BKmKtCkcRaLigoc8Stz3GoTWkGToKKzTATLhqvZqXeB1vgCKsDpW7BWSWTgaA6OURHdK1I7mmbYsxjYmFY9EPTMLqHCteyEftzbOvySSW1gm7ab+NVIH2EaCEC8tFHbu05OfL4cAjQGel6K70XNaWK1FZw6Woi1QS++ni16Iry9/nfypHiPYPdKbVfXE38+g7KFp+TgArZvoxm0wQ5IEBE+fk6UFsAnv8cux/8/53bw64plUVUYTNst/HfvIkcxxGRA6M98LL0kN9N9BPrZtfELBvxg8wGL9tOPOily4e8OiDXWphVTjivSlkARCbWL8GCGrBKOAva5G1BfKvqwkNxMtpQvAU5ipWvEzda3eBRrqwy8FyTMMbPh2NHuAgA93m7xCn5JJORQ2B6HXAwsUV1mvXuZiBsXdScLcTKgX9i4JzWvDw8CKLswFWnVjJt6+MTJKE3hR4e7kg3p0Wib5CJnzIE/0UW0v6hL+xrk9BsnkJtgVJxO2y5s7aXiC+0z10oDHq2J9OBHvDbvyzHu/ykBWY9k1X7Gq9A4R+806C7MYtk0r8OIVZqQVMXCQBsRZ7QFRNrp720YMKiYAkIhC435JQZLByxQUykqIWof5uPx2rF4scQ55IzER8SrOcxUHpMCswUAUgzF8hQfVVkuPKEvd/NpW1Id541M7xtdOMTY5rNjULLpMFmYrSIcFpsTWQb0cUEC27qvEMHcUIh+2H2c1sFgWjffwpufbBHo2nsWcN/7wMzSzRWmzNiuSvX1tJTU+DFpyPgmalh29YsTdz/deT4zdPGJumtDi1l65PRzcFziNH59EzIaoBx7tyfRpqGC1gzmi2/XowLDHyZ/An+7Idsemt5HACthp0edrb/nKWPnaIh+B2bpR5AMynvzL0ziCgDND819GDv9JX5XREncgX7aUFBoxN5BWRVcwvbKj6lhYl/v8AxgvLS/cXTQsAToHq/wigKICYLH3fHBeQSARlnAXuo3MR06VISWK0etPX7qrbFPqHvpPnVtvNWvvqnombB972OOLTtQm8bd1K0YciLsZY0EtBCPwchpHgCX8P6ks8XHw7zY/ZfKYF9xBo+eMrP02sE2YKIOjoR3WtAtyf5mw2lcvVWzcuWZ6JSBnJ0ijFxA5q0T+ZcRDOGXT4tuqy5ULM6+QQPUoUrIZvfJdzvN5AFaJJKALahepsNBfDAigHQArsdbfv6At7842geNrEliDUCXMR3apW83INmecTvdVVPpvY8VUKS0i098OC5oXUrdMUca3S9qIVHT+HVFs8r0zC2lvgIDrw6Mwhv37AFXuWnohsmcNv+1ORQ0w3H6gyN4hOKbL4B+z0iYlIlHcVlPgVLnyHqMB535Br3DCGzJaGgPxamV/T28wAC7yEThBx+1sAAYwKiysAAOSA1+6xxGf7AgAAAAAEWVo=",
  rows_blocks:
    "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4Au3AxZdABgLHATSdDM568GlV/XEzf1/l12IKE1/paChoPGY0nCwMnPCySaaRy0vP8UfZEk5BjK27YPmMCGC7utnmX/Ao3eT7tLCCMovxLRwQ/XriJHTzwJPY567rni4Wfj28S8I7/m3VBsjXrc9ZFfNFmdtuCazg4TvlBU8pJDHiGpsLq4MTyIM8c8eWiO1gmE1wDWfgK2yAZD0QFw5sugzbDxRuLLHH9tpSV9/AbEwExje6MZBTCImnPcFrCeHEZQEr6UGUIhcZRMiGXg9nUXUcwvzRsn4zYp0SqubFT/KBF8W1Cl5C59BKmKtCkcRaLigoc8Stz3GoTWkGToKKzTATLhqvZqXeB1vgCKsDpW7BWSWTgaA6OURHdK1I7mmbYsxjYmFY9EPTMLqHCteyEftzbOvySSW1gm7ab+NVIH2EaCEC8tFHbu05OfL4cAjQGel6K70XNaWK1FZw6Woi1QS++ni16Iry9/nfypHiPYPdKbVfXE38+g7KFp+TgArZvoxm0wQ5IEBE+fk6UFsAnv8cux/8/53bw64plUVUYTNst/HfvIkcxxGRA6M98LL0kN9N9BPrZtfELBvxg8wGL9tOPOily4e8OiDXWphVTjivSlkARCbWL8GCGrBKOAva5G1BfKvqwkNxMtpQvAU5ipWvEzda3eBRrqwy8FyTMMbPh2NHuAgA93m7xCn5JJORQ2B6HXAwsUV1mvXuZiBsXdScLcTKgX9i4JzWvDw8CKLswFWnVjJt6+MTJKE3hR4e7kg3p0Wib5CJnzIE/0UW0v6hL+xrk9BsnkJtgVJxO2y5s7aXiC+0z10oDHq2J9OBHvDbvyzHu/ykBWY9k1X7Gq9A4R+806C7MYtk0r8OIVZqQVMXCQBsRZ7QFRNrp720YMKiYAkIhC435JQZLByxQUykqIWof5uPx2rF4scQ55IzER8SrOcxUHpMCswUAUgzF8hQfVVkuPKEvd/NpW1Id541M7xtdOMTY5rNjULLpMFmYrSIcFpsTWQb0cUEC27qvEMHcUIh+2H2c1sFgWjffwpufbBHo2nsWEMC5oAAADjgIHQNSMSiwIAIQEWAAAAdC/lo+AJ0gJ9XQAZDEG63fziU1eZV82/hf46Sh48o8SsYkS9HzGm78Dd9/NQtMMF5gXgHQ9xnWUthSSyrii9+85yKIOisgAmss4xHVlKGduO9cYMYTP00e87LAJ3j//hkrg6Ou3x/ZqXPtemqp05AbndiEtC2zjctpClv3Ugu5OizRQGviEycgJAkbd7qFMX3ZFZxxCBLAFo9V6e7jbljpnSAGODGPdHu1qXh5N89I+9C+K3iqrT9xVsSe9buPbrxQC59Qb9NG20GQdRe/8HiJd2PTkOUvrpHjixrllL9EU8qq20fOwyBLgZSB1ilK/OKj5hX9xBcwRyZPCllVdmJTsVGToQkE+4EBoUL8YsKXYV2xfrIAcW1lpSPPXJMBERC4IE7j5E8fv8BYuMtsA18CfZkcOvAOtP5osUTILI2kODDoN+gL1P5b6IlKSoZenoki53/Tyq5PWXK2l3LxUD1vwZ9ui7OcWyUc0u41P2e24iHb8wNEjC3Icfr9jRunoIe5ulgyhgX84sMUi2NF/PTWRqES495F4YK1Ny49/Khdet7qskAUYcPWrE/dd6Smtzsk1qeL057rXPuoeAJfHV5O2SLEdRfptu8iEWhN7LwZilim3NxhX4/h281zyGFTv92FyGxZyfcqTx5OTQtf09W568OqFsfiUg1Wzn0dVOk+qIgKanPKsfhG7gbnVw1qD5kbrWh5wCdWWmHkSUTQyuE9GLfji96XganGJBUsGlRyGzB6kOSvUeXI/fm9ywOiMCYbqQfpAJZgVFnO7U0b9BqFOD/QmBWM3kt9SzORjws2uDN1BV8YKyUiPMvZp/fH2SSfWIzIIX2fFcAjEgw4WW32v49KGDV1/gAAAAAENCIwI39IUfAAKyBrgXmQXTEwAA1/HCpRQXOzADAAAAAARZWg==",
  rows_properties:
    "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4BWKBd0cABgLdwxqq/P6iVJmoRXEpM4YAmtwxhntjnXS3vkjFWRahgqclVCa57yjkKkkckGEsPzeL/z++xrwABgE9TZRY5Z0NCFuDEMflwYCKdsip8FeoyFSGWe3EXazI4XcE3/x2JNX8cY9plFFX3QmNL9KTF5n8H/JjKR7Aif3Rtk4dOSan/fcFvfs1Zg5Qv25bu9kNHXN3Z1ZxOSbs+A0WrujoM574cx/A3hNFUkyCdmjb5w3QaX+ggwduIQwC0XMAFnvYf/IB3DqjVe7JrE35TboGAAvaWiQxmxPvmwi1vzpH1Trjd7YfiSNK+UM9XF8q24/NdrQZPDFOBraL/dxUhVxlRkZ/OjO6sQuPpP63+zOcydVmG+0+u+0GI8NtFeL7ANDOzLhT1GwAfvrXAZPZ+oo7Wo4jKwL1mt3neZnETlkfdNEjjQF0VXZruSFJ+HgjFK8s3bhZ1l/D4jSEKKqj+WvHrQTTfW+44jMQG4RXMkOPiQV/Kg70fpyTxw4l1bcXdZEWn90UNOih7eXzUvh32gBsTAmTXVrQZTqrGMjzX/mMFJjvEy6FLj0Pl0bAWPVdqZrZshcFT+0A1yeEALsjWFI9Tu56MHq6Ed4N5zSZ5yU9MMoG/ftNooAbT8ATRewjoeaTRDnJX3r2BFsg5qe7SY29+Nojt5QJjuPof74wfwuEennhEHBJoIpsNH5E/StjqXcxf7gPnoYrRQVGrQOYKdV1LGejCV9OPcK5PAhAfJRy/QmR97/p5mZjraNbYMH7v1CMvBSIvkyoDltAnhaiSfHPOufBS20OcPaFNBRcNQF266O5MZWXJG0ZB/kZX2VV46lJ3GtnuqfBLU5AR8P18m+ekkgsWrbHIK+fjRPEZNpo3+1VizIoxe5Mj0Yni/WKBgn4+qu5Kf1BiySC+F0pWhWb4iuekhhv1XQ1ftQlWKWmg/V3UuNlyxOXSPYirdRphhYPT1aHGKrA1Z77kU9ktqDehdxoifB9xvr7zMFtDd2HKxDVOV8Uia91nKZulfUpRH98CcufBAJzYLuMHYIRCZUuwq84m2NLQ3/bDuVARFxepRTyntKMUMZnJhq/UyZBsRbNab2+3Sol8rX4sAaFTuhyDhBXz2Zkjc0ts5PGSLJxcASRvlhg66LgHA3QLOr3arbii5H+35llVgM9kumbhPaOnBbr7W1RX183RBaw7pa4rUTlozrm1P5HcKa1TrsNO0b09S5KrDUoYCSGl8ivahPOGLt7nooQSVKD3tyHbTtx0ccQ3Cro4VnvKilkgjSmISJDTvC3flD24VrGs8DueHtTePdtInSM/GtKuIlH+tZfupL/pFzmAgxoZAJGAqpGnNx+XHfMEA7ABUI9Gdj1sJcyrspbxUUo3lDLB633TCkrhl49IGSIJxj6534480oIMGp9V8UQWP7x9ABY9jAKKvxFMzKBExY4cAwkbcoNyny3CDivkbN+sGRADdo67QWUwlYNa/2p5aBjrD48laypmZR7qQq66fcA41GPbmsKFrgHt1qEhAraT0Z2mGGQ5UFBGCmm9WxckXgywS3JgnTdBHzcLw8M65EUNWqLW+7VclQTWIQwcGa4lSfqi8Rh7FLoHJqF0eB0KFy/jXlbyzBuQ5O5ymLaFt4x1C/cwuDvKVghwTw2CKhNHZ49ejj5Qr+FAN0Biu27JBnCANkD3fvhhVzFzauNGvFgWvr8KH1pIW21++dSZdvuRJG5Ih2gwKUCREtfBTX4cbrgl13Ocy5gLFXlxouQN5DkLZXgv91fBwLYmm64qytE0tKS3JTTb4Q2Xpm9x6CynDNYSrcOAAMqRpH7IhBfAtg6EadiIDJsyHw103qr2a6pfZyHVyCB2jCI6ZikNMjtZjTKfnN+6gqumbgLH/CV99ZnH2wFGOryloJ5LrduQcFZcYlE9i5m1QenSuudtDxIfA3BFzZWergPakVkxEn922KpkKodKvT8FcbJ6ePX5Qjq99jyFZKg9VkDKYdKU+jIS2JZSqdqk2QTwMAAAAAC7yEThBx+1sAAfkLiysAACY1WIixxGf7AgAAAAAEWVo=",
  noise:
    "/Td6WFoAAATm1rRGAgAhARYAAAB0L+WjAQErxn6Ba0v74vtU9r3ffBzhhwG/Md5Wcg9HZ2aHWaqIPFnqVhN70oWh2DxUVS83rmVb2gJ5mMzjGnaOX9mZjx8/Nu5DeE0N+r6m2uSGjtwpbU7/VuFwIPuPsVgFkMUJ3FPNqjtImVLTUp0Gn+q1wgYTmEmyAR6sMogxnFJGlXE2j1f2OR0W+oh09Zh8F1xBu21xjg9wWccBGy8zPZHAHaUNDaszjX5ejz7maHSmOrHDkxGoZMfbyuBg4fO/CQBnouMloCExh9VixahPfi4Ja5SfsG2pnloLRnCAts9HDKalKtis+6Drt3kkciOSSIDFpqeFt9eMkOSrY0RSZuOcMyX5Xqq6c2BdS3F+vqmMVxlxw8pe5SozrIhRZqF7dWdkmmnvb1ZCoB1RxQL3u5JFAMhBz2JZ59dOAAHEAqwCAADMqdU3scRn+wIAAAAABFla",
  delta: "/Td6WFoAAATm1rRGAgEDAQAhARZ5IMTu4AAXAA5dADQ/POAAIZTo48vY8MAAAAAAbBTtGztou5EAASoYVeGBXB+2830BAAAAAARZWg==",
} as const;

const HELLO = "hello hello hello hello\n";
const ROWS = Array.from({ length: 400 }, (_, i) => `${i},${(i * i) % 97},item ${i % 13}\n`).join("");

function file(name: keyof typeof FILES): Buffer {
  return Buffer.from(FILES[name], "base64");
}

async function unpacked(bytes: Uint8Array): Promise<Buffer> {
  const path = join(temporaryFolder(), "a.xz");
  writeFileSync(path, bytes);
  const parts: Uint8Array[] = [];
  for await (const part of unxz(path)) parts.push(part);
  return Buffer.concat(parts);
}

/** A tar archive of two files. */
const TAR_XZ =
  "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4A//AF9dADCLywMN5+txTm45dnXP0k64TB8fFHHZx7ixKZ+mGx5jY2EU9d2Gamj86EjZSx7lUX5G6QIKRHnRy1BplRXhCZgYtB4OYyzkk1mNWrva1upURWusMOgDWLwccVVBgO0AAACHDqtmY16OxwABe4AgAAAAczZks7HEZ/sCAAAAAARZWg==";

/** 300 bytes that do not compress, so that xz stores them. */
function noise(): Buffer {
  let x = 1n;
  return Buffer.from(
    Array.from({ length: 300 }, () => {
      x = (x * 1103515245n + 12345n) & 0x7fffffffn;
      return Number((x >> 16n) & 255n);
    }),
  );
}

test("unpacks .xz files: checks, several blocks, other properties, stored chunks, an empty file", async () => {
  expect(await unpacked(file("empty"))).toHaveLength(0);
  for (const name of ["hello", "hello_crc32", "hello_none"] as const)
    expect((await unpacked(file(name))).toString()).toBe(HELLO);
  for (const name of ["rows", "rows_blocks", "rows_properties"] as const)
    expect((await unpacked(file(name))).toString()).toBe(ROWS);
  expect(await unpacked(file("noise"))).toEqual(noise());
});

test("a reader of an .xz file may stop early, also when its end has just been read", async () => {
  const path = join(temporaryFolder(), "a.xz");
  // The tar reader stops at the empty block that ends an archive; the xz library may already be at its end.
  writeFileSync(path, Buffer.from(TAR_XZ, "base64"));
  for (let turns = 0; turns < 20; turns++) {
    const pieces = unxz(path);
    expect((await pieces.next()).done).toBe(false);
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
    await pieces.return(undefined);
  }
});

test(".xz streams may be concatenated, with padding to multiples of four", async () => {
  const two = Buffer.concat([file("hello"), Buffer.alloc(8), file("rows_blocks"), Buffer.alloc(4)]);
  expect((await unpacked(two)).toString()).toBe(HELLO + ROWS);
  await expect(unpacked(Buffer.concat([file("hello"), Buffer.alloc(2)]))).rejects.toThrow(/damaged or cut off/);
});

test("other filters and the check SHA-256 are refused with a remedy", async () => {
  for (const name of ["delta", "hello_sha256"] as const)
    await expect(unpacked(file(name))).rejects.toThrow(/uses something unusual.*xz -d/);
});

test("every truncation is detected, and no flipped byte of a checked file gives other data", async () => {
  const source = random("cuts");
  for (const [name, text] of [
    ["hello", HELLO],
    ["hello_crc32", HELLO],
    ["rows_blocks", ROWS],
  ] as const) {
    const good = file(name);
    for (const at of source.sample([...good.keys()], 60)) {
      await expect(unpacked(good.subarray(0, at))).rejects.toThrow(SqlEnvError);
      const bad = Buffer.from(good);
      bad[at]! ^= 1 << (at % 8);
      try {
        expect((await unpacked(bad)).toString(), `${name} with byte ${at} changed`).toBe(text);
      } catch (error) {
        expect(error).toBeInstanceOf(SqlEnvError);
      }
    }
  }
});

async function unpackBytes(bytes: Uint8Array, budget?: UnpackBudget): Promise<string> {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "archive"), bytes);
  await unpack(join(folder, "archive"), join(folder, "out"), { ...(budget && { budget }) });
  return join(folder, "out");
}

test.each([
  ["the same path twice", ["a/b", "a/b"], /same path twice: a\/b/],
  ["a file and a folder", ["a", "a/b"], /same path twice: a\/b/],
  ["a folder and a file", ["a/b", "a"], /same path twice: a/],
  ["files that differ in case", ["a/Dev.json", "a/dev.json"], /differ only in case: a\/Dev\.json, a\/dev\.json/],
  ["folders that differ in case", ["Database/x", "database/y"], /differ only in case: Database, database/],
  ["two forms of an accent", ["caf\u00e9", "cafe\u0301"], /differ only in case/],
])("%s: refused in zip and tar", async (_, names, message) => {
  const entries = names.map((name) => ({ name, data: name }));
  for (const archive of [makeZip(entries), makeTar(entries), gzipSync(makeTar(entries))])
    await expect(unpackBytes(archive)).rejects.toThrow(message);
});

test("files are unpacked unchanged, and the budget counts their bytes", async () => {
  const budget = new UnpackBudget(1_000_000);
  const data = "0123456789".repeat(30_000);
  const out = await unpackBytes(makeZip([{ name: "d/x", data }, { name: "y" }]), budget);
  expect(readFileSync(join(out, "d/x"), "utf8")).toBe(data);
  expect(readdirSync(out).sort()).toEqual(["d", "y"]);
  expect(budget.bytes).toBe(data.length);
  await expect(unpackBytes(makeZip([{ name: "z", data: data.repeat(2) }]), budget)).resolves.toBeTruthy();
  await expect(unpackBytes(makeZip([{ name: "z", data: data.repeat(2) }]), budget)).rejects.toThrow(
    /unpacks to more than allowed: 1000000 bytes.*--max-bytes/,
  );
});

test("a full disk is an error with a remedy", async (context) => {
  const disk = smallDisk(65_536);
  if (!disk) return context.skip("no file system can be mounted here: needs root on Linux");
  const archive = join(temporaryFolder(), "a.zip");
  writeFileSync(archive, makeZip([{ name: "big", data: new Uint8Array(500_000) }]));
  await expect(unpack(archive, join(disk, "out"))).rejects.toThrow(/cannot be unpacked \(ENOSPC.*free space/);
});

test("a truncated or damaged .gz is refused with an error of ours", async () => {
  const good = gzipSync(makeTar([{ name: "a", data: noise() }]));
  await expect(unpackBytes(good.subarray(0, 200))).rejects.toThrow(/\.gz file is damaged/);
  const bad = Buffer.from(good);
  bad[100]! ^= 4;
  await expect(unpackBytes(bad)).rejects.toThrow(SqlEnvError);
});
