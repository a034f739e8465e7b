// A form generates questions of one SQL shape about any world.

import type { Random } from "../../../random.ts";
import type { Difficulty } from "../../data/index.ts";
import type { World } from "../build.ts";
import { sentence } from "../english.ts";

export interface Draft {
  readonly question_text: string;
  readonly gold_sql: string;
}

/** A question about a world, or null where the world or the sample has none. */
export type Make = (world: World, r: Random) => Draft | null;

export interface Form {
  readonly name: string;
  readonly difficulty: Difficulty;
  /** The words promise several rows: a result of one would read oddly. */
  readonly several?: boolean;
  readonly make: Make;
}

/** The question in one of its phrasings, and its query; phrasings that do not fit are given as undefined or false. */
export function draft(r: Random, phrasings: readonly (string | undefined | false)[], gold_sql: string): Draft {
  const possible = phrasings.filter((phrasing): phrasing is string => typeof phrasing === "string");
  return { question_text: sentence(r.pick(possible)), gold_sql };
}
