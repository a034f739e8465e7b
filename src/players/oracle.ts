// The player that knows: looks at the tables of the gold query, runs it and gives its answer. The upper bound.
import { LAST_RESULT, type SQLAction } from "../env/index.ts";
import type { Player } from "./player.ts";

/** Always right; the only player that reads the gold. A small budget costs it looks, never the answer. */
export function oraclePlayer(): Player {
  return {
    name: "oracle",
    start: ({ question, rules }) => {
      const { tables_involved, gold_sql, gold_answer } = question;
      const looks = tables_involved.map((table): SQLAction => ({ action_type: "DESCRIBE", argument: table }));
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
