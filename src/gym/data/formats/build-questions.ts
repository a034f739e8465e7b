// Turns the records of a file into usable questions: runs every gold query and derives missing fields.
import { messageOf, QuestionLoadError, SqlEnvError } from "../../../errors.ts";
import { type Database, type DatabasePool, loadSqlite } from "../../sql/index.ts";
import { answerTypeOf, formatAnswer } from "../answer.ts";
import type { DataSet, Rejection, RejectionReason } from "../dataset.ts";
import { difficultyOf, tablesInvolved } from "../difficulty.ts";
import { checkGold } from "../gold.ts";
import type { AnswerType, Difficulty, QuestionRecord, Split } from "../question.ts";

/** A question as written in a file; missing fields are derived from the database. */
export interface QuestionDraft {
  readonly question_id?: string | undefined;
  readonly question_text: string;
  readonly database_name: string;
  readonly gold_sql: string;
  readonly gold_answer?: unknown;
  readonly answer_type?: AnswerType | undefined;
  readonly difficulty?: Difficulty | undefined;
  readonly tables_involved?: readonly string[] | undefined;
  readonly split: Split;
}

export interface AssembleOptions {
  /** Questions that the file reader has already rejected. */
  readonly rejected?: readonly Rejection[];
  readonly layout?: NonNullable<DataSet["layout"]>;
  readonly file?: (database: string) => Uint8Array;
}

/** Runs every gold query and keeps the usable questions; throws if there are none. */
export async function assemble(
  name: string,
  drafts: readonly QuestionDraft[],
  databases: DatabasePool,
  { rejected: refused = [], layout = "questions", file }: AssembleOptions = {},
): Promise<DataSet> {
  await loadSqlite();
  const outcomes: (QuestionRecord | Rejection)[] = [];
  const ids = new Set<string>();
  let current: { name: string; opened: Database | Refusal } | undefined;
  for (const draft of withIds(drafts)) {
    const { question_id, split, database_name } = draft;
    const reject = ({ reason, detail }: Refusal) => outcomes.push({ question_id, split, reason, detail });
    if (ids.has(question_id)) {
      reject({ reason: "duplicate_id", detail: "an earlier question has the same question_id" });
      continue;
    }
    ids.add(question_id);
    if (current?.name !== database_name) {
      current = { name: database_name, opened: open(databases, database_name) };
      await yieldToEventLoop();
    }
    if (!("run" in current.opened)) {
      reject(current.opened);
      continue;
    }
    const completed = complete(draft, current.opened);
    if ("reason" in completed) reject(completed);
    else outcomes.push(completed);
  }
  const questions = outcomes.filter((outcome): outcome is QuestionRecord => !("reason" in outcome));
  const rejected = [...refused, ...outcomes.filter((outcome): outcome is Rejection => "reason" in outcome)];
  if (questions.length === 0) throw noneUsable(name, rejected);
  return { name, questions, databases, rejected, layout, ...(file && { file }) };
}

type Refusal = Pick<Rejection, "reason" | "detail">;
type Identified = QuestionDraft & { readonly question_id: string };

/**
 * Assigns `<database>_<split>_<number>` to questions without an id. Counts unusable questions too, so that ids do not
 * depend on usability.
 */
function withIds(drafts: readonly QuestionDraft[]): Identified[] {
  const counts = new Map<string, number>();
  return drafts.map((draft) => {
    const prefix = `${draft.database_name}_${draft.split}`;
    const index = counts.get(prefix) ?? 0;
    counts.set(prefix, index + 1);
    return { ...draft, question_id: draft.question_id ?? `${prefix}_${String(index).padStart(3, "0")}` };
  });
}

function open(databases: DatabasePool, name: string): Database | Refusal {
  if (!databases.names.includes(name)) return { reason: "database_missing", detail: `there is no database ${name}` };
  try {
    return databases.get(name);
  } catch (error) {
    if (!(error instanceof SqlEnvError)) throw error;
    return { reason: "database_bad", detail: messageOf(error) };
  }
}

function complete(draft: Identified, database: Database): QuestionRecord | Refusal {
  const gold = checkGold(draft, database);
  if (!gold.ok) return gold;
  const unknown = draft.tables_involved?.find((name) => !database.table(name));
  if (unknown !== undefined) {
    return { reason: "malformed", detail: `tables_involved names ${unknown}, which ${database.name} does not have` };
  }
  return {
    question_id: draft.question_id,
    question_text: draft.question_text,
    database_name: draft.database_name,
    gold_sql: draft.gold_sql,
    gold_answer: formatAnswer(gold.table),
    answer_type: draft.answer_type ?? answerTypeOf(gold.table),
    difficulty: draft.difficulty ?? difficultyOf(draft.gold_sql),
    tables_involved: [...(draft.tables_involved ?? tablesInvolved(draft.gold_sql, database.tables))],
    split: draft.split,
  };
}

function noneUsable(name: string, rejected: readonly Rejection[]): QuestionLoadError {
  const counts = new Map<RejectionReason, number>();
  for (const { reason } of rejected) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const reasons = [...counts].map(([reason, count]) => `${count} ${reason}`).join(", ");
  const first = rejected[0];
  return new QuestionLoadError({
    what: `data set ${name} has no usable question`,
    value: reasons || "it is empty",
    remedy: first ? `the first: ${first.question_id}: ${first.detail}` : "put questions into its files",
  });
}

/** Yields to the event loop, so that signals and timers are handled during long synchronous work. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
