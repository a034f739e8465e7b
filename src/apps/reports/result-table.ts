// An action's rendered result, parsed back into a table.

export interface ResultTable {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly notice: string;
}

/** Parses the environment's rendering; null if a separator inside a cell makes the columns ambiguous. */
export function tableOf(result: string): ResultTable | null {
  const lines = result.split("\n");
  const notice = lines.length > 1 && /^\((?:no rows|.* rows shown)\)$/.test(lines.at(-1)!) ? lines.pop()! : "";
  const [head, ...rows] = lines.map((line) => line.split(" | "));
  if (!head || rows.some((row) => row.length !== head.length)) return null;
  return { head, rows, notice };
}
