// `sqlenv bench`: the numbers the project claims, each printed by a command.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Command } from "commander";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { loadSqlite } from "../../../gym/sql/index.ts";
import { benchEnv } from "../../bench/env.ts";
import { benchFunctions } from "../../bench/sqlite-functions.ts";
import { benchVerifier, type VerifierBench } from "../../bench/verifier/verifier.ts";
import { drawTable, formatBytes, formatNumber, output } from "../terminal/output.ts";
import { benchCompareCommand } from "./bench-compare.ts";
import { cudaCommand } from "./bench-cuda.ts";
import { dashboardCommand } from "./bench-dashboard.ts";
import { engineCommand } from "./bench-engine.ts";
import { grpoCommand } from "./bench-grpo.ts";
import { memoryCommand } from "./bench-memory.ts";
import { serverCommand } from "./bench-server.ts";
import { benchSqlCommand } from "./bench-sql.ts";

/** The `bench` command with its sub-commands. */
export function benchCommand(): Command {
  return new Command("bench")
    .description("measure what is claimed, and models as papers measure them")
    .addCommand(benchSqlCommand("spider"))
    .addCommand(benchSqlCommand("bird"))
    .addCommand(benchCompareCommand())
    .addCommand(envCommand())
    .addCommand(verifierCommand())
    .addCommand(engineCommand())
    .addCommand(grpoCommand())
    .addCommand(memoryCommand())
    .addCommand(cudaCommand())
    .addCommand(dashboardCommand())
    .addCommand(serverCommand());
}

interface BenchOptions {
  readonly json?: boolean;
  readonly data?: readonly string[];
}

function envCommand(): Command {
  return new Command("env")
    .description(
      "steps per second on one core, the memory of 1,000 open environments, and what guarding SQLite's functions costs",
    )
    .option("--json", "print one JSON object")
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
      out.line(drawTable(["500,000 rows WHERE", "here ms", "SQLite's own ms", "ratio"], functions));
      out.result(result);
    });
}

/** Bytes in use after collecting garbage: JavaScript's, and WebAssembly's. */
function memoryInUse(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function verifierCommand(): Command {
  return new Command("verifier")
    .description("right values rejected, wrong values accepted, and changed queries let pass by four rule sets")
    .option("--data <names...>", "data sets to try, by name or folder", ["bundled"])
    .option("--json", "print one JSON object")
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
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
  const line = (name: string, n: number | "", { set, multiset, ordered, ours }: VerifierBench["mutants"]) => [
    name,
    n,
    ...[set, multiset, ordered, ours].map(percent),
  ];
  const rows = Object.entries(result.by_mutation).map(([name, row]) => line(name, row.n, row));
  return [
    `${result.data}: ${formatNumber(result.questions)} questions`,
    `  wrong values accepted: ${result.false_accepts} of ${formatNumber(result.tried.wrong)}`,
    `  right values rejected: ${result.false_rejects} of ${formatNumber(result.tried.right)}`,
    `  results judged otherwise by @last than by their text: ${result.by_reference.differ} of ${formatNumber(result.by_reference.tried)}`,
    `  golds that order: ${formatNumber(result.ordered.golds)}, of which LIMIT cuts a tie in ${formatNumber(result.ordered.cut_ties)}`,
    ...result.examples.map((example) => `    ${example}`),
    "  changed gold queries whose result each rule set takes for the gold's:",
    drawTable(["change", "n", "set", "multiset", "ordered", "ours"], [...rows, line("all", "", result.mutants)], {
      indent: 2,
    }),
    "",
  ].join("\n");
}

/** All data sets together; mutant shares weighted by their number. */
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
