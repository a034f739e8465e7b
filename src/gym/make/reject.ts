// Recognizes drafts that are not worth asking by their SQL or their text, without running anything.
import type { DropReason } from "./questions.ts";

const NAME = String.raw`(?:"(?:[^"]|"")+"|\w+)`;
const COLUMN = String.raw`(?:CAST\()?(?:${NAME}\.)?(${NAME})(?: AS \w+\))?`;

/** Whether a query uses one column twice where only different ones make sense, or a value that cannot be said. */
export function isRedundant(sql: string): boolean {
  // People do not say that a value begins or ends with a space.
  if ([...sql.matchAll(/'((?:[^']|'')*)'/g)].some(([, value]) => value !== value!.trim())) return true;
  const two = new RegExp(`^SELECT ${COLUMN}, (?:AVG|SUM|MAX|MIN)\\(${COLUMN}\\) `).exec(sql);
  if (two && two[1] === two[2]) return true;
  const pair = new RegExp(`^SELECT ${COLUMN}, ${COLUMN} FROM `).exec(sql);
  if (pair && pair[1] === pair[2]) return true;
  // A query that selects both columns of a join condition gives each value twice.
  const [, list = "", one, other] =
    new RegExp(`^SELECT (.*?) FROM .*? ON (${NAME}\\.${NAME}) = (${NAME}\\.${NAME})(?: |$)`).exec(sql) ?? [];
  if ([one, other].every((side) => side !== undefined && list.split(", ").includes(side))) return true;
  const group = new RegExp(` GROUP BY ${COLUMN} (?:HAVING|ORDER BY) (?:AVG|SUM)\\(${COLUMN}\\)`).exec(sql);
  if (group && group[1] === group[2]) return true;
  const where = / WHERE (.*)$/.exec(sql)?.[1] ?? "";
  const tested = [...where.matchAll(new RegExp(`(?:^| AND )${COLUMN} (?:=|<|>|<=|>=|<>|BETWEEN|IN|LIKE) `, "g"))];
  const names = tested.map(([, name]) => name);
  if (!/ OR |SELECT/.test(where) && new Set(names).size < names.length) return true;
  // A condition on the selected column gives its value away.
  const selected = new RegExp(
    `^SELECT (?:(?:COUNT\\(DISTINCT|AVG|SUM|MAX|MIN) ?\\(?|DISTINCT )?${COLUMN}\\)? FROM `,
  ).exec(sql)?.[1];
  if (selected !== undefined && names.includes(selected) && !/SELECT/.test(where)) return true;
  const ordered = new RegExp(` ORDER BY ${COLUMN}(?: DESC)? LIMIT `).exec(sql)?.[1];
  if (ordered !== undefined && (ordered === selected || names.includes(ordered))) return true;
  const inner = new RegExp(` NOT IN \\(SELECT ${COLUMN} FROM ${NAME} WHERE ${COLUMN} `).exec(sql);
  return inner !== null && inner[1] === inner[2];
}

const DOUBLED =
  /\b(?:highest highest|lowest lowest|average average|total total|number of number|maximum maximum|minimum minimum|the the|of of|the (\w+) and the \1|(?:highest|lowest) (?:highest|lowest|maximum|minimum)|average (?:mean|maximum|minimum|average|highest|lowest)|total (?:number of total|average|mean))\b/i;

const MAX_TEXT = 260;

/** The forms whose words fit a column of yes and no, and those that fit a table of pairs. */
const FLAG_FORMS = /^look_up/;
const PAIR_FORMS = /^count$/;

/** Whether a form's words read oddly about a yes-or-no value or a pair of rows. */
export function isOdd(text: string, form: string): boolean {
  if (/" values?\b/.test(text) && !FLAG_FORMS.test(form)) return true;
  return /\S-\S+ pairs?\b/.test(text) && !PAIR_FORMS.test(form);
}

/** Why a text should not be asked; undefined if it may. `answer` is the answer if it is one text. */
export function faultOfText(text: string, answer: string | undefined): DropReason | undefined {
  if (text.length > MAX_TEXT || DOUBLED.test(text) || /undefined|\{\w+\}|\n/.test(text)) return "unclear_text";
  if (answer !== undefined && answer.length > 1) {
    const at = text.toLowerCase().indexOf(answer.toLowerCase());
    const isWord = at >= 0 && !/[\p{L}\p{N}]/u.test(`${text[at - 1] ?? " "}${text[at + answer.length] ?? " "}`);
    if (isWord) return "answer_in_text";
  }
  return undefined;
}
