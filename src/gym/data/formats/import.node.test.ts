import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import {
  birdFiles,
  makeTar,
  makeZip,
  petsDatabase,
  spiderFiles,
  temporaryFolder,
  writeFiles,
} from "../../../../test/helpers/data-files.ts";
import { processName } from "../../../io/process.node.ts";
import { exportDataSet } from "./export.node.ts";
import { importDataSet, nameOf } from "./import.node.ts";
import { findLayout } from "./layout.node.ts";
import { dataSetsFolder, importedDataSets, openDataSet } from "./open.node.ts";

type Files = Record<string, string | Uint8Array | object>;

function entries(files: Files, prefix = "") {
  return Object.entries(files).map(([name, content]) => ({
    name: prefix + name,
    data: typeof content === "string" || content instanceof Uint8Array ? content : JSON.stringify(content),
  }));
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Lists what an import leaves in its folder, including hidden files. */
function left(into: string): string[] {
  return existsSync(into) ? readdirSync(into).sort() : [];
}

test("imports folders, zips and tars, also when the data set is one or two folders deep", async () => {
  const into = temporaryFolder();
  const source = temporaryFolder();
  const files = await spiderFiles();
  writeFiles(source, {
    "folder/inside/README.txt": "hello",
    "a.zip": makeZip([{ name: "__MACOSX/spider/dev.json", data: "[]" }, ...entries(files, "spider/data/")]),
    "b.tar.gz": gzipSync(makeTar(entries(files, "spider/"))),
    "c.tar": makeTar(entries(files, "./")),
  });
  writeFiles(join(source, "folder/inside"), files);
  for (const name of ["folder", "a.zip", "b.tar.gz", "c.tar"]) {
    const imported = await importDataSet(join(source, name), into);
    expect(imported).toMatchObject({ name: nameOf(name), path: join(into, nameOf(name)), layout: "spider" });
    expect(imported.sha256).toBe(name === "folder" ? undefined : sha256(readFileSync(join(source, name))));
    const dataset = await openDataSet(imported.name, { imported: into });
    expect([dataset.name, dataset.questions.length, dataset.rejected.length]).toEqual([imported.name, 4, 8]);
  }
  expect(left(into)).toEqual(["a", "b", "c", "folder"]);
  expect(importedDataSets(into)).toEqual(["a", "b", "c", "folder"]);
});

test("imports BIRD, unpacking the archive of databases inside it", async () => {
  const into = temporaryFolder();
  const { "dev/dev.json": questions } = await birdFiles();
  const inner = makeZip(entries({ "zoo/zoo.sqlite": await petsDatabase() }, "dev_databases/"));
  const zip = join(temporaryFolder(), "bird.zip");
  writeFileSync(zip, makeZip(entries({ "dev.json": questions!, "dev_databases.zip": inner }, "dev_2024/")));
  expect(await importDataSet(zip, into)).toMatchObject({ name: "bird", layout: "bird" });
  expect((await openDataSet("bird", { imported: into })).questions).toHaveLength(1);
  expect(existsSync(join(into, "bird/dev_databases.zip"))).toBe(false);
});

test("nested archives share one limit", async () => {
  const into = temporaryFolder();
  const inner = makeZip([{ name: "big/big.sqlite", data: new Uint8Array(400_000) }]);
  const parts = Array.from({ length: 5 }, (_, i) => ({ name: `part${i}/dev_databases.zip`, data: inner }));
  const zip = join(temporaryFolder(), "bird.zip");
  writeFileSync(zip, makeZip(parts));
  const limited = importDataSet(zip, into, { maxBytes: 1_000_000 });
  await expect(limited).rejects.toThrow(/unpacks to more than allowed: 1000000 bytes/);
  expect(left(into)).toEqual([]);
  await expect(importDataSet(zip, into, { maxBytes: 3_000_000 })).rejects.toThrow(/no data set found/);
});

test("imports from a URL", async () => {
  const zip = makeZip(entries(await spiderFiles()));
  const server = createServer((_, response) => response.end(zip));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const into = temporaryFolder();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/files/spider%20mini.zip?download=1`;
  const stages: string[] = [];
  await expect(importDataSet(url, into)).rejects.toThrow(/not a name for a data set: spider mini/);
  await importDataSet(url, into, { name: "mini", onStage: (stage) => stages.push(stage) });
  expect(left(into)).toEqual(["mini"]);
  expect(stages).toHaveLength(2);
  const wrong = importDataSet(url, into, { name: "other", sha256: "0".repeat(64) });
  await expect(wrong).rejects.toThrow(new RegExp(`SHA-256 is ${sha256(zip)}, not what`));
  await expect(importDataSet(url, into, { name: "other", sha256: "x" })).rejects.toThrow(/not a SHA-256: x/);
  await expect(importDataSet(url, into, { name: "other", maxBytes: 100 })).rejects.toThrow(/100 are allowed/);
  await importDataSet(url, into, { name: "other", sha256: sha256(zip).toUpperCase() });
  expect(left(into)).toEqual(["mini", "other"]);
  await expect(importDataSet("ftp://example.org/x.zip", into)).rejects.toThrow(/use http or https/);
});

test("a failed import leaves no files", async () => {
  const into = temporaryFolder();
  const source = temporaryFolder();
  const files = await spiderFiles();
  writeFiles(source, {
    "evil.zip": makeZip([...entries(files), { name: "../evil.txt", data: "x" }]),
    "torn.zip": makeZip(entries(files)).slice(0, -30),
    "twice.tar": makeTar([...entries(files), { name: "dev.json", data: "[]" }]),
    "other.zip": makeZip([{ name: "holiday.jpg", data: "x" }]),
    "empty.zip": makeZip([]),
    "text.zip": "just text",
    "nothing.zip": "",
    "linked/dev.json": files["dev.json"]!,
    "linked/database/pets_dev.sqlite": files["database/pets_dev/pets_dev.sqlite"]!,
  });
  symlinkSync("/etc/passwd", join(source, "linked/extra"));
  for (const [name, message] of [
    ["evil.zip", /unsafe path/],
    ["torn.zip", /not a zip archive, or one that is damaged or cut off/],
    ["twice.tar", /same path twice: dev\.json/],
    ["other.zip", /no data set found/],
    ["empty.zip", /holds no files/],
    ["text.zip", /not an archive of a known kind/],
    ["nothing.zip", /archive is empty/],
    ["linked", /holds a link/],
    ["absent.zip", /no such file or folder: .*absent\.zip/],
  ] as const) {
    const importing = importDataSet(join(source, name), into);
    await expect(importing, name).rejects.toThrow(message);
    await expect(importing, "no temporary folder is named").rejects.not.toThrow(/\.import-/);
    expect(left(into)).toEqual([]);
  }
  expect(existsSync(join(into, "../evil.txt"))).toBe(false);
});

test("of two concurrent imports under one name, one succeeds and the other is refused", async () => {
  const zip = makeZip(entries(await spiderFiles()));
  const server = createServer((_, response) => response.end(zip));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const into = temporaryFolder();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/spider.zip`;
  const both = await Promise.allSettled([importDataSet(url, into), importDataSet(url, into)]);
  expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  const refused = both.find((one) => one.status === "rejected") as PromiseRejectedResult;
  expect(refused.reason).toMatchObject({ what: "a data set of this name is already imported" });
  expect(left(into)).toEqual(["spider"]);
  expect((await openDataSet("spider", { imported: into })).questions).toHaveLength(4);
});

test("an import removes the remains of imports that were killed", async () => {
  const into = temporaryFolder();
  const mine = processName();
  writeFiles(into, {
    [`.import-${mine.replace(/\d+$/, "999999999")}~gone/x`]: "",
    [`.import-${mine.replace(/\d+$/, "1")}~runs/x`]: "",
    ".import-elsewhere.7~old/x": "",
    ".import-elsewhere.7~new/x": "",
  });
  utimesSync(join(into, ".import-elsewhere.7~old"), 1, 1);
  const source = temporaryFolder();
  writeFiles(join(source, "spider"), await spiderFiles());
  await importDataSet(join(source, "spider"), into);
  expect(left(into)).toEqual([".import-elsewhere.7~new", `.import-${mine.replace(/\d+$/, "1")}~runs`, "spider"].sort());
});

test("an imported set is replaced only with `replace`, and atomically", async () => {
  const into = temporaryFolder();
  const source = temporaryFolder();
  writeFiles(source, { "spider/extra.txt": "1" });
  writeFiles(join(source, "spider"), await spiderFiles());
  await importDataSet(join(source, "spider"), into);
  await expect(importDataSet(join(source, "spider"), into)).rejects.toThrow(/already imported: spider/);
  writeFiles(source, { "spider/extra.txt": "2" });
  await importDataSet(join(source, "spider"), into, { replace: true });
  expect(readFileSync(join(into, "spider/extra.txt"), "utf8")).toBe("2");
  expect(left(into)).toEqual(["spider"]);
  for (const name of ["bundled", "../x", ".x", ""]) {
    await expect(importDataSet(join(source, "spider"), into, { name })).rejects.toThrow(/not a name/);
  }
});

test("an exported set is in the native layout, self-contained, and loads as the same set", async () => {
  const folder = temporaryFolder();
  writeFiles(join(folder, "spider"), await spiderFiles());
  const dataset = await openDataSet(join(folder, "spider"));
  const written = exportDataSet(dataset, join(folder, "out"));
  expect(written).toMatchObject({ databases: 2, questions: { train: 2, eval: 2 }, left_out: [] });
  expect(findLayout(join(folder, "out")).layout).toBe("questions");
  const again = await openDataSet(join(folder, "out"));
  expect(again.rejected).toEqual([]);
  const expected = dataset.questions.map((question) => ({
    ...question,
    gold_sql: question.gold_sql.replaceAll('"', "'"),
  }));
  expect(again.questions).toEqual(expected);
  const one = await openDataSet(join(folder, "out/questions/questions_eval.json"));
  expect(one.questions).toEqual(expected.filter(({ split }) => split === "eval"));
  expect(() => exportDataSet(dataset, join(folder, "out"))).toThrow(/folder is not empty/);
  const { file: _, ...noFiles } = dataset;
  expect(() => exportDataSet(noFiles, join(folder, "other"))).toThrow(/does not give its database files/);
});

test("unknown names and paths are errors with a remedy", async () => {
  const folder = temporaryFolder();
  const imported = join(folder, "sets");
  writeFiles(folder, { "sets/spider/x.txt": "", "q.json": "[]", "a.zip": "PK" });
  await expect(openDataSet("spidr", { imported })).rejects.toThrow(/no such data set: spidr; did you mean spider\?/);
  await expect(openDataSet("spider", { imported })).rejects.toThrow(/no data set found in the folder/);
  await expect(openDataSet(join(folder, "a.zip"), { imported })).rejects.toThrow(/sqlenv data import/);
  await expect(openDataSet(join(folder, "q.json"), { imported })).rejects.toThrow(
    /no databases found for the question file/,
  );
  expect(dataSetsFolder({ SQLENV_HOME: "/s", XDG_CACHE_HOME: "/x" })).toBe("/s/datasets");
  expect(dataSetsFolder({ XDG_CACHE_HOME: "/x" })).toBe("/x/sqlenv/datasets");
  expect(dataSetsFolder({})).toMatch(/[/\\]\.cache[/\\]sqlenv[/\\]datasets$/);
});
