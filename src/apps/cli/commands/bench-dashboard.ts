// `sqlenv bench dashboard`: load times and page size of the dashboard on a long run.
import { Command } from "commander";
import { benchDashboard } from "../../bench/servers/dashboard.node.ts";
import { JSON_OUTPUT } from "../options/common.ts";
import { countFromOne, drawTable, formatBytes, formatNumber, output, wholeNumber } from "../terminal/output.ts";

/** The `bench dashboard` command. */
export function dashboardCommand(): Command {
  return new Command("dashboard")
    .description("load time and page size of the dashboard on a long run (needs Chromium)")
    .option("--steps <number>", "steps of the run", countFromOne("--steps"), 1000)
    .option("--episodes <number>", "episodes of the run", wholeNumber("--episodes"), 100_000)
    .option("--json", JSON_OUTPUT)
    .action(async (options: { readonly steps: number; readonly episodes: number; readonly json?: boolean }) => {
      const out = output(options);
      const result = await benchDashboard(options, (text) => out.progress(text));
      const ms = (value: number) => `${Math.round(value)} ms`;
      out.line(
        `${formatNumber(result.steps)} steps, ${formatNumber(result.episodes)} episodes in ${formatBytes(result.episodes_bytes)}, Chromium ${result.browser}`,
      );
      const rows: [string, string][] = [
        ["first paint", ms(result.first_paint_ms)],
        ["first screen complete", ms(result.shown_ms)],
        ["first load, index being built: first paint", ms(result.first_load.first_paint_ms)],
        ["first load, index being built: complete", ms(result.first_load.shown_ms)],
        ["index of all episodes built", ms(result.index_ms)],
        ["filter and sort episodes", ms(result.query_ms)],
        ["open an episode", ms(result.episode_ms)],
        ["page, compressed", formatBytes(result.page_bytes)],
        ["page with the run's records, compressed", formatBytes(result.all_bytes)],
        ["server memory", formatBytes(result.server_rss_bytes)],
      ];
      out.line(drawTable(["what", "measured"], rows));
      out.result(result);
    });
}
