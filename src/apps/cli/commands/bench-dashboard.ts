// `sqlenv bench dashboard`: what a reader waits for on a long run, and what the page weighs.
import { Command } from "commander";
import { benchDashboard } from "../../bench/servers/dashboard.node.ts";
import { drawTable, formatBytes, formatNumber, output, wholeNumber } from "../terminal/output.ts";

/** The `bench dashboard` command. */
export function dashboardCommand(): Command {
  return new Command("dashboard")
    .description("first paint and page weight of the dashboard on a long run, in a real browser (needs Chromium)")
    .option("--steps <number>", "steps of the run", wholeNumber("--steps"), 1000)
    .option("--episodes <number>", "episodes of the run", wholeNumber("--episodes"), 100_000)
    .option("--json", "print one JSON object")
    .action(async (options: { readonly steps: number; readonly episodes: number; readonly json?: boolean }) => {
      const out = output(options);
      const result = await benchDashboard(options, (words) => out.progress(words));
      const ms = (value: number) => `${Math.round(value)} ms`;
      out.line(
        `${formatNumber(result.steps)} steps, ${formatNumber(result.episodes)} episodes in ${formatBytes(result.episodes_bytes)}, Chromium ${result.browser}`,
      );
      const rows: [string, string][] = [
        ["first paint", ms(result.first_paint_ms)],
        ["first screen shows the run", ms(result.shown_ms)],
        ["first load, while episodes are read: first paint", ms(result.first_load.first_paint_ms)],
        ["first load, while episodes are read: shown", ms(result.first_load.shown_ms)],
        ["all episodes can be searched", ms(result.index_ms)],
        ["filter and sort them", ms(result.query_ms)],
        ["open one", ms(result.episode_ms)],
        ["page, compressed", formatBytes(result.page_bytes)],
        ["page with the run's records, compressed", formatBytes(result.all_bytes)],
        ["memory of the process", formatBytes(result.server_rss_bytes)],
      ];
      out.line(drawTable(["what", "measured"], rows));
      out.result(result);
    });
}
