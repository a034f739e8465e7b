// `sqlenv data check`: opens every database, runs every gold query and reports unusable questions.
import { Command } from "commander";
import { checkDataSet, type DataSetCheck, SEEN_ROWS, SPLITS } from "../../../gym/data/index.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { DATA, DATA_SEED, DB_DIR, JSON_OUTPUT } from "../options/common.ts";
import { counted, drawTable, type Output, output, printable, styled, wholeNumber } from "../terminal/output.ts";

const SHOWN_FAILURES = 20;

interface CheckFlags {
  readonly data: string;
  readonly dbDir?: string;
  readonly seed?: number;
  readonly json?: boolean;
}

/**
 * Exits with 1 if something failed. Questions of published data sets that are known to be unusable are counted, but are
 * not failures.
 */
export function checkCommand(): Command {
  return new Command("check")
    .description("open every database and run every gold query")
    .option("--data <name>", DATA, "bundled")
    .option("--db-dir <dir>", DB_DIR)
    .option("--seed <number>", DATA_SEED, wholeNumber("--seed"))
    .option("--json", JSON_OUTPUT)
    .action(async ({ data, ...options }: CheckFlags) => {
      const out = output(options);
      out.progress(`checking ${data}`);
      const check = await checkDataSet(await resolveDataSet(data, options));
      draw(check, out);
      out.result(check);
      if (check.failed.length > 0) process.exitCode = 1;
    });
}

function draw(check: DataSetCheck, out: Output): void {
  const { name, databases, questions_before, questions_after } = check;
  out.line(
    `${styled("bold", name)}: ${counted(databases, "database")}, ${questions_after} of ${counted(questions_before, "question")} usable\n`,
  );
  out.line(
    drawTable(
      ["split", "questions", "databases", "rejected"],
      [
        ["train", check.train, check.train_databases, sum(check.by_reason.train)],
        ["eval", check.eval, check.eval_databases, sum(check.by_reason.eval)],
        ["  on training databases", check.eval_seen, "", ""],
        ["  on unseen databases", check.eval_unseen, "", ""],
      ],
    ),
  );
  out.line(`\ndifficulty   ${listed(check.by_difficulty)}`);
  out.line(`answer type  ${listed(check.by_answer_type)}`);
  const { train, eval: evaluation } = check.long_golds;
  if (train + evaluation > 0) {
    out.line(`answers with more than the ${SEEN_ROWS} rows a player sees at once: train ${train}, eval ${evaluation}`);
  }
  out.line(`SHA-256 of the evaluation questions' ids: ${check.eval_ids_sha256}`);
  for (const split of SPLITS) {
    if (sum(check.by_reason[split]) > 0) out.line(`rejected in ${split}: ${listed(check.by_reason[split])}`);
  }
  if (check.failed.length === 0) {
    out.line(`\n${styled("green", "nothing failed")}`);
    return;
  }
  out.line(`\n${styled("red", `${check.failed.length} failed`)}`);
  for (const { id, reason, detail } of check.failed.slice(0, SHOWN_FAILURES))
    out.line(printable(`  ${id}: ${reason}: ${detail}`));
  if (check.failed.length > SHOWN_FAILURES)
    out.line(`  … and ${check.failed.length - SHOWN_FAILURES} more; --json lists all`);
}

function sum(counts: Readonly<Partial<Record<string, number>>>): number {
  return Object.values(counts).reduce<number>((total, count) => total + (count ?? 0), 0);
}

function listed(counts: Readonly<Partial<Record<string, number>>>): string {
  return Object.entries(counts)
    .map(([key, count]) => `${key} ${count}`)
    .join(", ");
}
