// Files for tests of loaders: temporary folders, small databases, miniature Spider and BIRD, hand-built archives.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { crc32, deflateRawSync } from "node:zlib";
import { onTestFinished } from "vitest";
import { createDatabase, loadSqlite } from "../../src/gym/sql/index.ts";

/** A folder that is removed after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "sqlenv-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Writes files into a folder, making folders as needed; objects become JSON. */
export function writeFiles(folder: string, files: Readonly<Record<string, string | Uint8Array | object>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    const isRaw = typeof content === "string" || content instanceof Uint8Array;
    writeFileSync(join(folder, path), isRaw ? content : JSON.stringify(content));
  }
}

/** A database about pets and their owners, with an empty table and a NULL. */
export async function petsDatabase(): Promise<Uint8Array> {
  await loadSqlite();
  return createDatabase([
    {
      name: "owner",
      ddl: "CREATE TABLE owner (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT)",
      rows: [
        [1, "Ada", "Paris"],
        [2, "Ben", "Rome"],
        [3, "Cleo", null],
      ],
    },
    {
      name: "pet",
      ddl: "CREATE TABLE pet (id INTEGER PRIMARY KEY, owner_id INTEGER REFERENCES owner(id), name TEXT, weight REAL)",
      rows: [
        [1, 1, "Rex", 12.5],
        [2, 1, "Tom", 4.0],
        [3, 2, "Kit", null],
      ],
    },
    { name: "vet", ddl: "CREATE TABLE vet (id INTEGER PRIMARY KEY, name TEXT)", rows: [] },
  ]);
}

/** Spider's layout with one training and one evaluation database; each split has one question for every way to be kept or rejected. */
export async function spiderFiles(): Promise<Record<string, Uint8Array | object>> {
  const pets = await petsDatabase();
  const questions = (db_id: string) => [
    { db_id, question: "How many pets are there?", query: "SELECT count(*) FROM pet" },
    { db_id, question: "Where does Ada live?", query: 'SELECT city FROM owner WHERE name = "Ada"' },
    { db_id, question: "Which vets are there?", query: "SELECT name FROM vet" },
    { db_id, question: "What is the heaviest vet?", query: "SELECT max(id) FROM vet" },
    { db_id, question: "Who is gone?", query: "SELECT name FROM gone" },
    { db_id: "nowhere", question: "Where?", query: "SELECT 1" },
  ];
  return {
    "train_spider.json": questions("pets_train"),
    "dev.json": questions("pets_dev"),
    "tables.json": [],
    "database/pets_train/pets_train.sqlite": pets,
    "database/pets_dev/pets_dev.sqlite": pets,
  };
}

/** BIRD's layout in its two halves. */
export async function birdFiles(): Promise<Record<string, Uint8Array | object>> {
  const pets = await petsDatabase();
  const question = {
    db_id: "pets",
    question: "How many pets?",
    evidence: "pets live in pet",
    SQL: "SELECT count(*) FROM `pet`",
  };
  return {
    "train/train.json": [question],
    "train/train_databases/pets/pets.sqlite": pets,
    "dev/dev.json": [{ ...question, db_id: "zoo", evidence: "", difficulty: "challenging", question_id: 0 }],
    "dev/dev_databases/zoo/zoo.sqlite": pets,
  };
}

export interface ZipEntry {
  readonly name: string;
  readonly data?: Uint8Array | string;
  /** Size that the headers claim. */
  readonly claimedSize?: number;
  readonly crc?: number;
  readonly method?: number;
  /** Sizes in the zip64 extra field, where the ordinary ones are all ones. @default false */
  readonly zip64?: boolean;
}

/** A zip archive with whatever its entries claim. */
export function makeZip(entries: readonly ZipEntry[]): Uint8Array {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, data = "", claimedSize, crc, method = 8, zip64 = false } of entries) {
    const bytes = Buffer.from(data);
    const packed = method === 8 ? deflateRawSync(bytes) : bytes;
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(method, 4);
    common.writeUInt32LE(crc ?? crc32(bytes), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(claimedSize ?? bytes.length, 18);
    common.writeUInt16LE(Buffer.byteLength(name), 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), common, Buffer.from(name), packed]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    const central = Buffer.from(common);
    const extra = Buffer.alloc(zip64 ? 20 : 0);
    if (zip64) {
      central.fill(0xff, 14, 22);
      central.writeUInt16LE(extra.length, 24);
      extra.writeUInt16LE(1, 0);
      extra.writeUInt16LE(16, 2);
      extra.writeBigUInt64LE(BigInt(bytes.length), 4);
      extra.writeBigUInt64LE(BigInt(packed.length), 12);
    }
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x00"), central, tail, Buffer.from(name), extra]));
    parts.push(local);
    offset += local.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(size, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, ...directory, end]);
}

export interface TarEntry {
  readonly name: string;
  readonly data?: Uint8Array | string;
  /** "0" file, "2" symbolic link, "5" folder, "L" GNU long name … */
  readonly type?: string;
  /** Size that the header claims. */
  readonly claimedSize?: number;
}

/** A ustar archive. */
export function makeTar(entries: readonly TarEntry[]): Uint8Array {
  const blocks = entries.flatMap(({ name, data = "", type = "0", claimedSize }) => {
    const bytes = Buffer.from(data);
    const header = Buffer.alloc(512);
    header.write(name, 0, 100);
    header.write("0000644\0", 100);
    header.write(`${(claimedSize ?? bytes.length).toString(8).padStart(11, "0")}\0`, 124);
    header.write("00000000000\0        ", 136);
    header.write(type, 156);
    header.write("ustar\x0000", 257, "latin1");
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    return [header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}
