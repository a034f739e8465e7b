// The data source of an exported page: compressed records in the file.
import { findGold } from "../../reports/gold.ts";
import { EpisodeIndex } from "../server/episode-index.ts";
import type { ExportedRun } from "../server/export-records.ts";
import { findQuestion, listQuestions } from "../server/questions.ts";
import type { Source } from "./run-source.ts";

/** The embedded records as a source; null if the page came from a server. */
export async function embeddedSource(): Promise<Source | null> {
  const packed = document.getElementById("records")?.textContent;
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const unpacked = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
  return sourceOf((await unpacked.json()) as ExportedRun[]);
}

function sourceOf(exported: readonly ExportedRun[]): Source {
  const runs = exported.map((run) => {
    const index = new EpisodeIndex();
    for (const episode of run.episodes) index.add(episode);
    return { ...run, index };
  });
  const named = (id: string) => {
    const run = runs.find(({ summary }) => summary.id === id);
    if (!run) throw new Error(`no such run: ${id}`);
    return run;
  };
  const numbered = (id: string) => (n: number) => {
    const episode = named(id).episodes[n];
    if (!episode) throw new Error(`no such episode: ${n}`);
    return { n, episode, gold: findGold(named(id).gold, episode.question_id) };
  };
  return {
    runs: async () => runs.map(({ summary }) => summary),
    summary: async (id) => named(id).summary,
    log: async (id, name, from) => (from === 0 ? named(id).logs[name] : { from, total: from, columns: {} }),
    episodes: async (id, query) => named(id).index.query(query),
    episode: async (id, n, query = {}) => {
      const neighbours = named(id).index.neighbours(n, query);
      return { ...numbered(id)(n), ...(neighbours && { neighbours }) };
    },
    questions: async (id) => listQuestions(named(id)),
    question: async (id, question) => {
      const found = findQuestion(named(id), question);
      if (!found) throw new Error(`no such question: ${question}`);
      return found;
    },
    group: async (id, step, group) =>
      named(id)
        .index.group(step, group)
        .map(({ n }) => numbered(id)(n)),
    comparison: async (id) => named(id).comparison,
    follow: (_run, _cursor, follower) => {
      follower.onState("ended");
      return () => {};
    },
    download: () => null,
  };
}
