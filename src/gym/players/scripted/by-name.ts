// The scripted players by name.
import type { Player } from "../player.ts";
import { guesserPlayer } from "./guesser.ts";
import { keywordPlayer } from "./keyword.ts";
import { lookerPlayer } from "./looker.ts";
import { oraclePlayer } from "./oracle.ts";
import { flailerPlayer, randomPlayer } from "./random.ts";
import { type TeacherOptions, teacherPlayer } from "./teacher.ts";

export const SCRIPTED_NAMES = ["random", "flailer", "guesser", "looker", "keyword", "oracle", "teacher"] as const;

export type ScriptedName = (typeof SCRIPTED_NAMES)[number];

/** Constructors of the scripted players; only the teacher has options. */
export const SCRIPTED_PLAYERS: Readonly<Record<ScriptedName, (options?: TeacherOptions) => Player>> = {
  random: () => randomPlayer(),
  flailer: () => flailerPlayer(),
  guesser: () => guesserPlayer(),
  looker: () => lookerPlayer(),
  keyword: () => keywordPlayer(),
  oracle: () => oraclePlayer(),
  teacher: teacherPlayer,
};
