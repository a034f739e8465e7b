// Recognizes drafts that are not worth asking by their SQL or their text, without running anything.
import type { DropReason } from "./questions.ts";

const NAME = String.raw`(?:"(?:[^"]|"")+"|\w+)`;
const COLUMN = String.raw`(?:CAST\()?(?:${NAME}\.)?(${NAME})(?: AS \w+\))?`;

/** Whether a query uses one column twice where only different ones make sense. */
export function isRedundant(sql: string): boolean {
  const two = new RegExp(`^SELECT ${COLUMN}, (?:AVG|SUM|MAX|MIN)\\(${COLUMN}\\) `).exec(sql);
  if (two && two[1] === two[2]) return true;
  const pair = new RegExp(`^SELECT ${COLUMN}, ${COLUMN} FROM `).exec(sql);
  if (pair && pair[1] === pair[2]) return true;
  const group = new RegExp(` GROUP BY ${COLUMN} (?:HAVING|ORDER BY) (?:AVG|SUM)\\(${COLUMN}\\)`).exec(sql);
  if (group && group[1] === group[2]) return true;
  const where = / WHERE (.*)$/.exec(sql)?.[1] ?? "";
  const tested = [...where.matchAll(new RegExp(`(?:^| AND )${COLUMN} (?:=|<|>|<=|>=|<>|BETWEEN|IN|LIKE) `, "g"))];
  const names = tested.map(([, name]) => name);
  if (!/ OR |SELECT/.test(where) && new Set(names).size < names.length) return true;
  // The selected or ordered column has one value under an equality on it.
  const selected = new RegExp(`^SELECT (?:DISTINCT |COUNT\\(DISTINCT )?${COLUMN}\\)? FROM `).exec(sql)?.[1];
  const equal = new RegExp(`^${COLUMN} = `).exec(where)?.[1];
  return selected !== undefined && selected === equal && !/SELECT/.test(where);
}

const DOUBLED =
  /\b(?:highest highest|lowest lowest|average average|total total|number of number|maximum maximum|minimum minimum|the the|of of|(?:highest|lowest) (?:highest|lowest|maximum|minimum)|average (?:mean|maximum|minimum|average|highest|lowest)|total (?:number of total|average|mean))\b/i;

/** Why a text should not be asked; undefined if it may. `answer` is the answer if it is one text. */
export function faultOfText(text: string, answer: string | undefined): DropReason | undefined {
  if (text.length > 260 || DOUBLED.test(text) || /undefined|\{\w+\}|\n/.test(text)) return "unclear_text";
  if (answer !== undefined && answer.length > 1) {
    const at = text.toLowerCase().indexOf(answer.toLowerCase());
    const isWord = at >= 0 && !/[\p{L}\p{N}]/u.test(`${text[at - 1] ?? " "}${text[at + answer.length] ?? " "}`);
    if (isWord) return "answer_in_text";
  }
  return undefined;
}
