// A database in a style of its own, for tests that write questions about it: camelCase names, no declared references,
// flags, dates and personal data.
import { createDatabase, loadSqlite, type NewTable } from "../../src/gym/sql/index.ts";

const CITIES = ["Lyon", "Oslo", "Quito", "Turin"];
const BREWS = ["Amber", "Bitter", "Copper", "Dunkel", "Export", "Fresh", "Gose", "Hell", "Imperial", "Kellerbier"];

export const STRANGE: readonly NewTable[] = [
  {
    name: "tblBreweries",
    ddl: "CREATE TABLE tblBreweries (BreweryID INTEGER PRIMARY KEY, breweryName TEXT, homeCity TEXT, foundedYear INTEGER, email TEXT)",
    rows: ["Anchor", "Bell", "Crown", "Delta", "Eagle", "Falcon"].map((name, i) => [
      i + 1,
      `${name} Works`,
      CITIES[i % 4]!,
      1900 + 17 * i,
      `info@${name.toLowerCase()}.example`,
    ]),
  },
  {
    name: "beers",
    ddl: "CREATE TABLE beers (beer_no INTEGER PRIMARY KEY, BeerName TEXT, breweryid INTEGER, bottlePrice REAL, is_organic TEXT, style TEXT, firstBrewed TEXT)",
    rows: Array.from({ length: 30 }, (_, i) => [
      100 + i,
      `${BREWS[i % 10]} ${["One", "Two", "Three"][Math.floor(i / 10)]}`,
      (i * 7) % 5 === 0 ? 1 : ((i * 3) % 5) + 1,
      2 + ((i * 37) % 29) / 4,
      i % 3 === 0 ? "Y" : "N",
      ["ale", "lager", "stout"][(i * i) % 3]!,
      `20${10 + (i % 8)}-0${1 + (i % 9)}-1${i % 10}`,
    ]),
  },
  { name: "empty_notes", ddl: "CREATE TABLE empty_notes (id INTEGER PRIMARY KEY, note TEXT)", rows: [] },
];

/** The database's bytes. */
export async function strangeDatabase(): Promise<Uint8Array> {
  await loadSqlite();
  return createDatabase(STRANGE);
}
