// The filter and order of the episodes, in the URL: the list, and an episode opened from it, share them.
import type { Difficulty } from "../../../gym/data/question.ts";
import { type EpisodeQuery, SORT_KEYS, VERDICTS } from "../server/schemas.ts";

/** Rows of a page. */
export const PAGE = 50;
export const DIFFICULTIES: readonly Difficulty[] = ["easy", "medium", "hard"];

/** Reads a query from a URL's parameters; invalid values are ignored. */
export function queryOf(params: URLSearchParams): EpisodeQuery {
  const whole = (key: string) => (/^\d+$/.test(params.get(key) ?? "") ? Number(params.get(key)) : undefined);
  const values = {
    text: params.get("text") ?? "",
    from_step: whole("from_step"),
    to_step: whole("to_step"),
    verdict: VERDICTS.find((name) => name === params.get("verdict")),
    difficulty: DIFFICULTIES.find((name) => name === params.get("difficulty")),
    actions: params.get("actions") ?? undefined,
    sort: SORT_KEYS.find((key) => key === params.get("sort")) ?? "n",
    descending: params.get("descending") !== "false",
    offset: whole("offset") ?? 0,
    limit: PAGE,
  };
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as EpisodeQuery;
}

/** A query as URL parameters; undefined for default values. */
export function paramsOf(query: EpisodeQuery): Readonly<Record<string, string | number | undefined>> {
  const { text, from_step, to_step, verdict, difficulty, actions, sort, descending, offset } = query;
  return {
    text,
    from_step,
    to_step,
    verdict,
    difficulty,
    actions,
    descending: descending === false ? "false" : undefined,
    sort: sort === "n" ? undefined : sort,
    offset: offset || undefined,
  };
}
