// A form generates questions of one SQL shape about any world.

import type { Random } from "../../../random.ts";
import type { Difficulty } from "../../data/index.ts";
import type { World } from "../build.ts";
import { sentence } from "../english.ts";

export interface Draft {
  readonly question_text: string;
  readonly gold_sql: string;
  /** All phrasings, of which `question_text` is one. */
  readonly phrasings: readonly string[];
}

/** Makes a question about a world; null if the world or the sample offers none. */
export type Make = (world: World, r: Random) => Draft | null;

export interface Form {
  readonly name: string;
  readonly difficulty: Difficulty;
  /** Whether the phrasing promises several rows, so that a single one would read oddly. */
  readonly several?: boolean;
  readonly make: Make;
}

/** Makes a draft from one of the phrasings and the query; undefined or false marks phrasings that do not fit. */
export function draft(r: Random, phrasings: readonly (string | undefined | false)[], gold_sql: string): Draft {
  const possible = phrasings.filter((phrasing): phrasing is string => typeof phrasing === "string");
  return { question_text: sentence(r.pick(possible)), gold_sql, phrasings: [...new Set(possible.map(sentence))] };
}
