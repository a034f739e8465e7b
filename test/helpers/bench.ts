// Parts of the benchmarks that tests use.
import type { BenchResult } from "../../src/apps/bench/text-to-sql/result.ts";
import { drawBench } from "../../src/apps/cli/commands/bench-sql-table.ts";
import type { Output } from "../../src/apps/cli/terminal/output.ts";

export { loadServer, soakServer } from "../../src/apps/bench/servers/server.ts";
export { writeSyntheticRun } from "../../src/apps/bench/servers/synthetic-run.node.ts";
export type { BenchResult } from "../../src/apps/bench/text-to-sql/result.ts";

/** The lines that show a result to a person. */
export function drawnBench(result: BenchResult): string[] {
  const lines: string[] = [];
  drawBench(result, { line: (line = "") => lines.push(line) } as unknown as Output);
  return lines;
}
