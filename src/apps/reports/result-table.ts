// What an action showed, read back as a table.

export interface ResultTable {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly notice: string;
}

/** Reads back what the environment renders; null when a bar inside a cell makes the columns uncertain. */
export function tableOf(result: string): ResultTable | null {
  const lines = result.split("\n");
  const notice = lines.length > 1 && /^\((?:no rows|.* rows shown)\)$/.test(lines.at(-1)!) ? lines.pop()! : "";
  const [head, ...rows] = lines.map((line) => line.split(" | "));
  if (!head || rows.some((row) => row.length !== head.length)) return null;
  return { head, rows, notice };
}
