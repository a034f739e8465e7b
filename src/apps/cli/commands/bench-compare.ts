// `sqlenv bench compare`: significance tests on two results of `bench spider` or `bench bird`.
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { UsageError } from "../../../errors.ts";
import {
  type BenchComparison,
  compareResults,
  DIFFERENCES,
  type Difference,
  readResult,
} from "../../bench/text-to-sql/compare.ts";
import { percent } from "../../reports/format.ts";
import { JSON_OUTPUT } from "../options/common.ts";
import { listOf } from "../options/questions.ts";
import { drawTable, type Output, output, printable, styled, wholeNumber } from "../terminal/output.ts";
import { shortName } from "./bench-sql-table.ts";

interface CompareFlags {
  readonly differing?: Difference[];
  readonly seed: number;
  readonly json?: boolean;
}

/** The command. */
export function benchCompareCommand(): Command {
  return new Command("compare")
    .description("test whether two results differ: files of bench spider or bird, or outcomes.json of runs")
    .argument("<a>", "a result written by --out, or a run's outcomes.json")
    .argument("<b>", "another on the same questions")
    .option("--differing <list>", `settings that may differ: ${DIFFERENCES.join(",")}`, (text: string) =>
      listOf("--differing", text, DIFFERENCES),
    )
    .option("--seed <number>", "seed of the permutation test", wholeNumber("--seed"), 7)
    .option("--json", JSON_OUTPUT)
    .action((a: string, b: string, flags: CompareFlags) => {
      const out = output(flags);
      const [first, second] = [read(a), read(b)];
      const { seed, differing: allowed = [] } = flags;
      const comparison = compareResults(first, second, { seed, allowed });
      draw(comparison, out);
      out.result(comparison);
    });
}

function read(file: string): ReturnType<typeof readResult> {
  let json: string;
  try {
    json = readFileSync(file, "utf8");
  } catch (cause) {
    throw new UsageError({ what: "cannot read the result", value: file, remedy: "check the path", cause });
  }
  return readResult(json, file);
}

function draw({ a, b, differing, measures }: BenchComparison, out: Output): void {
  const all = Object.entries(measures);
  const { questions = 0, databases = 0 } = all[0]?.[1] ?? {};
  out.line(`A: ${printable(shortName(a.name))}`);
  out.line(`B: ${printable(shortName(b.name))}`);
  out.line(`${questions} questions, ${databases} databases`);
  for (const [side, { errors, questions: asked }] of Object.entries({ A: a, B: b }))
    if (errors > 0) out.line(styled("yellow", `${side}: ${errors} of ${asked} questions failed and count as wrong`));
  if (differing.length > 0) out.line(`the settings differ in: ${differing.join(", ")}`);
  out.line();
  const points = (value: number) => `${value < 0 ? "−" : "+"}${(100 * Math.abs(value)).toFixed(1)}`;
  const rows = all.map(([name, one]) => [
    name,
    percent(one.a).padStart(7),
    percent(one.b).padStart(7),
    points(one.difference).padStart(6),
    (one.difference_ci ? one.difference_ci.map(points).join(" to ") : "–").padStart(14),
    `${one.only_a}/${one.only_b}`.padStart(8),
    probability(one.mcnemar_p).padStart(7),
    probability(one.permutation_p).padStart(7),
  ]);
  const head = ["", "A", "B", "B − A", "95 % interval", "A/B only", "McNemar", "by db"];
  const widths = [0, 7, 7, 6, 14, 8, 7, 7];
  out.line(
    drawTable(
      head.map((title, i) => title.padStart(widths[i]!)),
      rows,
    ),
  );
  out.line();
  out.line("McNemar: exact test that treats questions as independent. by db: permutation");
  out.line("test that flips the signs of whole databases. The interval is over databases");
  out.line("too, and never narrower than that of paired questions.");
}

function probability(p: number): string {
  return p >= 0.0001 ? p.toFixed(4) : p.toExponential(0);
}
