// Exports runs as one self-contained HTML file: the dashboard's page with the records embedded.
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { SqlEnvError } from "../../../errors.ts";
import type { EpisodeRecord } from "../../../gym/evaluation/index.ts";
import { dashboardAssets } from "./assets.node.ts";
import type { ExportedRun } from "./export-records.ts";
import type { QuestionRecords } from "./questions.ts";
import { RunList } from "./run-list.node.ts";
import type { EpisodeRow } from "./schemas.ts";
import type { WatchedRun } from "./watched-run.node.ts";

/** Episodes per run in a file, which keeps a run of 10,000 steps below a few megabytes. */
export const EXPORTED_EPISODES = 1000;
/** Evaluated questions per run in a file, with their episodes before and after training. */
const EXPORTED_QUESTIONS = 400;

export interface ExportedPage {
  readonly html: string;
  /** Per run: its episodes, and how many are in the file. */
  readonly runs: readonly { readonly run: string; readonly episodes: number; readonly kept: number }[];
}

/** Exports these runs. */
export async function exportDashboard(paths: readonly string[]): Promise<ExportedPage> {
  const exported = await Promise.all(new RunList(paths).list().map(recordsOf));
  const records = gzipSync(JSON.stringify(exported.map(({ records }) => records)), { level: 9 }).toString("base64");
  return { html: pageWith(records), runs: exported.map(({ about }) => about) };
}

async function recordsOf(run: WatchedRun) {
  await run.settle();
  const rows = evenly(run.episodes.rows, EXPORTED_EPISODES);
  const episodes = await run.readEpisodes(rows);
  const summary = run.summary();
  const all = summary.episodes.count;
  const kept = { count: episodes.length, indexed: 1, ...(episodes.length < all ? { of: all } : {}) };
  const { comparison, evaluation, gold } = withFewerQuestions(run.questionRecords());
  const shown = [episodes, ...(evaluation ? [evaluation.after, evaluation.before] : [])].flat();
  const ids = new Set([...shown, ...comparison.questions].map(({ question_id }) => question_id));
  const records: ExportedRun = {
    summary: { ...summary, episodes: kept },
    logs: { metrics: run.log("metrics"), timings: run.log("timings"), habits: run.log("habits") },
    comparison,
    evaluation,
    gold: gold && Object.fromEntries([...ids].flatMap((id) => (Object.hasOwn(gold, id) ? [[id, gold[id]!]] : []))),
    episodes,
  };
  return { records, about: { run: run.name, episodes: all, kept: episodes.length } };
}

/** At most EXPORTED_QUESTIONS of the evaluation, the wrong ones first. */
function withFewerQuestions({ evaluation, ...records }: QuestionRecords): QuestionRecords {
  if (!evaluation || evaluation.before.length <= EXPORTED_QUESTIONS) return { ...records, evaluation };
  const played = evaluation.after.length > 0 ? evaluation.after : evaluation.before;
  const wrong = played.filter(({ correctness }) => correctness !== 1);
  const right = played.filter(({ correctness }) => correctness === 1);
  const kept = new Set([...wrong, ...right].slice(0, EXPORTED_QUESTIONS).map(({ question_id }) => question_id));
  const some = (episodes: readonly EpisodeRecord[]) => episodes.filter(({ question_id }) => kept.has(question_id));
  return { ...records, evaluation: { before: some(evaluation.before), after: some(evaluation.after) } };
}

/** Whole groups, sampled evenly over the training. */
function evenly(rows: readonly EpisodeRow[], most: number): readonly EpisodeRow[] {
  if (rows.length <= most) return rows;
  const groups = new Map<string, EpisodeRow[]>();
  for (const row of rows) {
    const key = `${row.step}.${row.group}`;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  const all = [...groups.values()];
  const wanted = Math.max(1, Math.floor((most / rows.length) * all.length));
  return Array.from({ length: wanted }, (_, i) => all[Math.floor((i * all.length) / wanted)]!).flat();
}

/** The built page with script, style and records inlined; only that script may run. */
function pageWith(records: string): string {
  const assets = dashboardAssets();
  const text = (ending: string) => {
    const found = [...assets].find(([name]) => name.endsWith(ending));
    if (!found)
      throw new SqlEnvError("not_built", { what: "the dashboard's page is incomplete", remedy: "npm run build" });
    return found[1].bytes.toString("utf8");
  };
  // Inside a page these would close the element.
  const script = text(".js").replaceAll("</script", "<\\/script");
  const style = text(".css").replaceAll("</style", "<\\/style");
  const hash = (content: string) => `'sha256-${createHash("sha256").update(content).digest("base64")}'`;
  const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'`;
  const licenses = text(".txt").replaceAll("--", "- -"); // two hyphens would close the comment
  return `<!doctype html>
<!--
${licenses}
-->
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>SQLEnv dashboard</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<div id="app"><p class="loading">Unpacking the run …</p></div>
<script type="application/octet-stream" id="records">${records}</script>
<script type="module">${script}</script>
</body>
</html>
`;
}
