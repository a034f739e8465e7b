// `sqlenv bench`: benchmarks of models, and of every part the project makes claims about.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Command } from "commander";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { loadSqlite } from "../../../gym/sql/index.ts";
import { benchEnv } from "../../bench/env.ts";
import { benchFunctions } from "../../bench/sqlite-functions.ts";
import { benchVerifier, type VerifierBench } from "../../bench/verifier/verifier.ts";
import { percent } from "../../reports/format.ts";
import { JSON_OUTPUT } from "../options/common.ts";
import { drawTable, formatBytes, formatNumber, output } from "../terminal/output.ts";
import { benchCompareCommand } from "./bench-compare.ts";
import { cudaCommand } from "./bench-cuda.ts";
import { dashboardCommand } from "./bench-dashboard.ts";
import { engineCommand } from "./bench-engine.ts";
import { grpoCommand } from "./bench-grpo.ts";
import { memoryCommand } from "./bench-memory.ts";
import { serverCommand } from "./bench-server.ts";
import { benchSqlCommand } from "./bench-sql.ts";
import { webGpuCommand } from "./bench-webgpu.ts";

/** The `bench` command with its sub-commands. */
export function benchCommand(): Command {
  return new Command("bench")
    .description("benchmark models, and the project's own parts")
    .addCommand(benchSqlCommand("spider"))
    .addCommand(benchSqlCommand("bird"))
    .addCommand(benchCompareCommand())
    .addCommand(envCommand())
    .addCommand(verifierCommand())
    .addCommand(engineCommand())
    .addCommand(grpoCommand())
    .addCommand(memoryCommand())
    .addCommand(cudaCommand())
    .addCommand(webGpuCommand())
    .addCommand(dashboardCommand())
    .addCommand(serverCommand());
}

interface BenchOptions {
  readonly json?: boolean;
  readonly data?: readonly string[];
}

function envCommand(): Command {
  return new Command("env")
    .description("speed and memory of the environment on one core")
    .option("--json", JSON_OUTPUT)
    .action(async (options: BenchOptions) => {
      const out = output(options);
      const engine = await loadSqlite();
      const result = { ...benchEnv(await resolveDataSet("bundled"), memoryInUse), functions: benchFunctions(engine) };
      const rows = Object.entries(result.by_action).map(([action, { per_s }]) => [action, per_s]);
      out.line(drawTable(["action", "per second"], [["mixed", result.mixed.steps_per_s], ...rows]));
      out.line(`1,000 open environments: ${formatBytes(result.open_1000_bytes)}; medians of ${result.rounds} rounds`);
      const functions = result.functions.map(({ where, guarded_ms, sqlite_ms, ratio }) => [
        where,
        guarded_ms,
        sqlite_ms,
        ratio,
      ]);
      out.line();
      out.line(drawTable(["500,000 rows WHERE", "sandbox ms", "SQLite ms", "ratio"], functions));
      out.result(result);
    });
}

/** Bytes in use after garbage collection, in JavaScript and WebAssembly. */
function memoryInUse(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function verifierCommand(): Command {
  return new Command("verifier")
    .description("error rates of the answer verifier")
    .option("--data <names...>", "data sets, by name or path", ["bundled"])
    .option("--json", JSON_OUTPUT)
    .action(async (options: BenchOptions) => {
      const out = output(options);
      await loadSqlite();
      const results: VerifierBench[] = [];
      for (const name of options.data ?? []) {
        const data = await resolveDataSet(name);
        const result = benchVerifier(data, (done, all) => {
          if (done % 50 === 0) out.progress(`${data.name}: ${done} of ${all} questions`);
        });
        data.databases.close();
        results.push(result);
        out.line(describe(result));
      }
      out.result({ ...totals(results), by_data: results });
    });
}

function describe(result: VerifierBench): string {
  const line = (name: string, n: number | "", { set, multiset, ordered, ours }: VerifierBench["mutants"]) => [
    name,
    n,
    ...[set, multiset, ordered, ours].map(percent),
  ];
  const rows = Object.entries(result.by_mutation).map(([name, row]) => line(name, row.n, row));
  return [
    `${result.data}: ${formatNumber(result.questions)} questions`,
    `  wrong answers accepted: ${result.false_accepts} of ${formatNumber(result.tried.wrong)}`,
    `  correct answers in other formats rejected: ${result.false_rejects} of ${formatNumber(result.tried.right)}`,
    `  results judged differently as @last than as text: ${result.by_reference.differ} of ${formatNumber(result.by_reference.tried)}`,
    `  gold queries with ORDER BY: ${formatNumber(result.ordered.golds)}, of which LIMIT cuts a tie in ${formatNumber(result.ordered.cut_ties)}`,
    ...result.examples.map((example) => `    ${example}`),
    "  mutated gold queries whose result each comparison accepts:",
    drawTable(["mutation", "n", "set", "multiset", "ordered", "ours"], [...rows, line("all", "", result.mutants)], {
      indent: 2,
    }),
    "",
  ].join("\n");
}

/** Totals over all data sets; shares of mutated queries are weighted by their number. */
function totals(results: readonly VerifierBench[]) {
  const sum = (pick: (result: VerifierBench) => number) => results.reduce((total, result) => total + pick(result), 0);
  const mutantsOf = (result: VerifierBench) => Object.values(result.by_mutation).reduce((n, row) => n + row.n, 0);
  const share = (rule: keyof VerifierBench["mutants"]) =>
    Math.round((sum((result) => result.mutants[rule] * mutantsOf(result)) / Math.max(1, sum(mutantsOf))) * 1e4) / 1e4;
  return {
    false_accepts: sum((result) => result.false_accepts),
    false_rejects: sum((result) => result.false_rejects),
    tried: { wrong: sum((result) => result.tried.wrong), right: sum((result) => result.tried.right) },
    mutants: { set: share("set"), multiset: share("multiset"), ordered: share("ordered"), ours: share("ours") },
  };
}
