// The tables of a recorded episode as its player knew them after some steps.
import type { EpisodeRecord } from "../../../gym/episode.ts";
import { type ParsedDescription, parseDescription, parseTables } from "../../../gym/players/lib/parse-observation.ts";
import type { SchemaTable } from "./worker-protocol.ts";

/** Tables by name; columns and row counts of those described in the first `at` steps. */
export function replaySchema({ start, steps }: Pick<EpisodeRecord, "start" | "steps">, at: number): SchemaTable[] {
  const shown = steps.slice(0, at);
  const described = new Map<string, ParsedDescription>();
  for (const { action, observation } of shown) {
    if (action.action_type !== "DESCRIBE" || observation.error !== null) continue;
    const description = parseDescription(observation.result, observation.schema_info);
    if (description) described.set(description.name, description);
  }
  const info = start?.schema_info || steps[0]?.observation.schema_info || "";
  return parseTables(info).map(({ name }) => {
    const known = described.get(name);
    const columns = (known?.columns ?? []).map(({ name: column, type, primary_key, references }) => {
      return { name: column, type, primary_key, target: references };
    });
    return { name, kind: "table", rows: known?.rows ?? null, columns };
  });
}
