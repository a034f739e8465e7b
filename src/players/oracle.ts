// The player that knows: looks at the tables of the gold query, runs it and gives its answer. The upper bound.
import type { SQLAction } from "../env/index.ts";
import type { Player } from "./player.ts";

/** Always right; the only player that reads the gold. A small budget costs it looks, never the answer. */
export function oraclePlayer(): Player {
  return {
    name: "oracle",
    start: ({ question }) => {
      const { tables_involved, gold_sql, gold_answer } = question;
      const looks = tables_involved.map((table): SQLAction => ({ action_type: "DESCRIBE", argument: table }));
      const query: SQLAction = { action_type: "QUERY", argument: gold_sql };
      const answer: SQLAction = { action_type: "ANSWER", argument: gold_answer };
      let queried = false;
      return ({ budget_remaining }) => {
        if (queried || budget_remaining <= 1) return { action: answer };
        const look = budget_remaining > 2 ? looks.shift() : undefined;
        queried = look === undefined;
        return { action: look ?? query };
      };
    },
  };
}
