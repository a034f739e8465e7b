// A training's result as rows to read: random, before and after, where training has questions and where it has none.
import type { Behaviour, Summary } from "../../gym/evaluation/index.ts";
import type { Manner, Place, Reach, TrainingResult } from "../../rl/run/records.ts";
import { percent, percentRange } from "./format.ts";

/** Where three players stand; a training's result is one. */
export type Standings = Pick<TrainingResult, "random" | "before" | "after" | "base">;

export interface StandingRow {
  readonly place: Place;
  readonly manner: Manner;
  /** "unseen databases, greedy" */
  readonly name: string;
  readonly random: Summary;
  readonly before: Summary;
  readonly after: Summary;
  /** Whether the intervals of before and after lie apart, and which way. */
  readonly verdict: "better" | "worse" | "not told apart";
}

/** The four rows of a result; unseen databases first, they are the harder claim. */
export function standingRows({ random, before, after }: Standings): StandingRow[] {
  return (["unseen", "seen"] as const).flatMap((place) =>
    (["greedy", "sampled"] as const).map((manner) => {
      const [was, is] = [before[place][manner], after[place][manner]];
      return {
        place,
        manner,
        name: `${place} databases, ${manner}`,
        random: random[place][manner],
        before: was,
        after: is,
        verdict: verdictOf(was, is),
      };
    }),
  );
}

/** Whether anything was evaluated there: a set of one database has no unseen ones. */
export function isScored({ random, before, after }: StandingRow): boolean {
  return [random, before, after].some(({ scored }) => scored > 0);
}

/** Whether two intervals lie apart, and which way. */
export function verdictOf({ success_ci: was }: Summary, { success_ci: is }: Summary): StandingRow["verdict"] {
  if (!was || !is) return "not told apart";
  if (is[0] > was[1]) return "better";
  return is[1] < was[0] ? "worse" : "not told apart";
}

/** "12.3 % (5.0 – 22.1 %)" */
export function withInterval({ success_rate, success_ci }: Summary): string {
  return success_ci ? `${percent(success_rate)} (${percentRange(success_ci)})` : percent(success_rate);
}

/** One line: what the training did to success on databases it never saw. */
export function headline(result: Standings): string {
  const row = standingRows(result).find(({ before, after }) => before.scored > 0 && after.scored > 0);
  if (!row) return 'nothing was evaluated: questions with "split": "eval" would be';
  const told = row.verdict === "not told apart" ? ", intervals overlap" : "";
  const base = result.base?.[row.place][row.manner];
  const was = base
    ? `${percent(base.success_rate)} untrained, ${withInterval(row.before)} before GRPO`
    : `${withInterval(row.before)} before`;
  return `success on ${row.name}: ${was}, ${withInterval(row.after)} after${told}; random ${percent(row.random.success_rate)}`;
}

const BEHAVIOUR: readonly (readonly [keyof Behaviour, string])[] = [
  ["described_first", "describes the table before querying it"],
  ["answers_seen", "answers with values it has seen"],
  ["steps_to_solve", "actions to a right answer"],
  ["repeats", "repeated actions an episode"],
];

/** What the model could do before training, in a sentence. */
export function reachText({ questions, tries, greedy, solved_in_tries }: Reach): string {
  return `before training, on ${questions} training questions: right ${percent(greedy)}, right at least once in ${tries} tries ${percent(solved_in_tries)}: this is what reward can reach first`;
}

/** What the players do, greedy, on the databases of the first row that was evaluated: a name, then random, before and after. Runs of old have none. */
export function behaviourRows(result: Standings): string[][] {
  const rows = standingRows(result);
  const row = rows.find(isScored) ?? rows[0]!;
  const summaries = [row.random, row.before, row.after].map(({ behaviour }) => behaviour as Behaviour | undefined);
  if (summaries.some((behaviour) => behaviour === undefined)) return [];
  return BEHAVIOUR.map(([key, name]) => [
    name,
    ...summaries.map((behaviour) => {
      const value = behaviour![key];
      if (key === "described_first" || key === "answers_seen") return percent(value);
      return value?.toFixed(1) ?? "–";
    }),
  ]);
}
