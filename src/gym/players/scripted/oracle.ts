// The oracle, an upper bound: describes the tables of the gold query, runs it and gives its answer.
import { LAST_RESULT, MAX_DESCRIBED, type SQLAction, tableNames } from "../../env/index.ts";
import type { Player } from "../player.ts";

/**
 * Always right, because it reads the gold query. With a small budget it skips DESCRIBE, never the answer.
 *
 * @example
 * const { success_rate } = await evaluate(data, oraclePlayer()); // 1
 */
export function oraclePlayer(): Player {
  return {
    name: "oracle",
    start: ({ question, rules }) => {
      const { tables_involved, gold_sql, gold_answer } = question;
      const list = tables_involved.join(", ");
      const isOne = rules?.describe_many && tables_involved.length <= MAX_DESCRIBED;
      // A name that contains a comma would be parsed as two names.
      const names = isOne && tableNames(list).length === tables_involved.length ? [list] : [...tables_involved];
      const looks = names.map((argument): SQLAction => ({ action_type: "DESCRIBE", argument }));
      const query: SQLAction = { action_type: "QUERY", argument: gold_sql };
      const answer: SQLAction = { action_type: "ANSWER", argument: gold_answer };
      const reference: SQLAction = { action_type: "ANSWER", argument: LAST_RESULT };
      let queried = false;
      return ({ budget_remaining }) => {
        if (queried && rules?.answer_last) return { action: reference };
        if (queried || budget_remaining <= 1) return { action: answer };
        const look = budget_remaining > 2 ? looks.shift() : undefined;
        queried = look === undefined;
        return { action: look ?? query };
      };
    },
  };
}
