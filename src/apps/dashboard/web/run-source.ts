// The page's data source: its server, or records embedded in the file.

import type { Comparison } from "../../../rl/run/records.ts";
import type {
  EpisodePage,
  EpisodeQuery,
  FeedEvent,
  LogName,
  LogPage,
  NumberedEpisode,
  QuestionDetail,
  QuestionRow,
  RunListing,
  RunSummary,
} from "../server/schemas.ts";

/** State of the connection; "ended" if there is none. */
export type FeedState = "open" | "lost" | "ended";

export interface Follower {
  onEvent(event: FeedEvent): void;
  /** The run was restarted: reload it. */
  onReset(): void;
  onState(state: FeedState): void;
}

export interface Source {
  runs(): Promise<readonly RunListing[]>;
  summary(run: string): Promise<RunSummary>;
  log(run: string, name: LogName, from: number): Promise<LogPage>;
  episodes(run: string, query: EpisodeQuery): Promise<EpisodePage>;
  /** An episode, with its neighbours in the list of a query. */
  episode(run: string, n: number, query?: EpisodeQuery): Promise<NumberedEpisode>;
  /** The questions of the last evaluation. */
  questions(run: string): Promise<readonly QuestionRow[]>;
  question(run: string, id: string): Promise<QuestionDetail>;
  group(run: string, step: number, group: number): Promise<readonly NumberedEpisode[]>;
  comparison(run: string): Promise<Comparison>;
  /** Follows a run from a cursor; returns a function that stops it. */
  follow(run: string, cursor: string, follower: Follower): () => void;
  /** The URL of a download; null if there is no server. */
  download(run: string, file: string, query?: EpisodeQuery): string | null;
}

/** Records from the page's server. */
export class ServerSource implements Source {
  async runs(): Promise<readonly RunListing[]> {
    return (await read<{ runs: RunListing[] }>("api/runs")).runs;
  }
  summary(run: string) {
    return read<RunSummary>(runPath(run));
  }
  log(run: string, name: LogName, from: number) {
    return read<LogPage>(runPath(run, name, { from }));
  }
  episodes(run: string, query: EpisodeQuery) {
    return read<EpisodePage>(runPath(run, "episodes", { ...query }));
  }
  episode(run: string, n: number, query: EpisodeQuery = {}) {
    return read<NumberedEpisode>(runPath(run, `episodes/${n}`, { ...query }));
  }
  async questions(run: string) {
    return (await read<{ questions: QuestionRow[] }>(runPath(run, "evaluation"))).questions;
  }
  question(run: string, id: string) {
    return read<QuestionDetail>(runPath(run, "question", { id }));
  }
  async group(run: string, step: number, group: number) {
    return (await read<{ episodes: NumberedEpisode[] }>(runPath(run, `groups/${step}/${group}`))).episodes;
  }
  comparison(run: string) {
    return read<Comparison>(runPath(run, "comparison"));
  }
  download(run: string, file: string, query: EpisodeQuery = {}) {
    return runPath(run, `download/${file}`, { ...query });
  }

  /** The browser reconnects by itself with the last event's id; if it gives up, the feed is reopened. */
  follow(run: string, cursor: string, follower: Follower): () => void {
    let known = cursor;
    let feed: EventSource | null = null;
    let timer = 0;
    const open = () => {
      feed = new EventSource(runPath(run, "events", { since: known }));
      feed.onopen = () => follower.onState("open");
      feed.onmessage = (message) => {
        const event = JSON.parse(message.data as string) as FeedEvent;
        known = event.summary.cursor;
        follower.onEvent(event);
      };
      feed.addEventListener("reset", () => {
        close();
        follower.onReset();
      });
      feed.onerror = () => {
        follower.onState("lost");
        if (feed?.readyState !== EventSource.CLOSED) return;
        close();
        timer = window.setTimeout(open, 2000);
      };
    };
    const close = () => {
      clearTimeout(timer);
      feed?.close();
      feed = null;
    };
    // A background page closes its feed: browsers allow few connections per server.
    const onVisibility = () => {
      if (document.visibilityState === "hidden") close();
      else if (!feed) open();
    };
    document.addEventListener("visibilitychange", onVisibility);
    open();
    return () => {
      document.removeEventListener("visibilitychange", onVisibility);
      close();
    };
  }
}

function runPath(run: string, what = "", query: Readonly<Record<string, unknown>> = {}): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query))
    if (value !== undefined && value !== "") params.set(key, String(value));
  const path = ["api/runs", encodeURIComponent(run), ...(what ? [what] : [])].join("/");
  return params.size > 0 ? `${path}?${params}` : path;
}

async function read<T>(path: string): Promise<T> {
  const response = await fetch(path);
  const body = (await response.json()) as T & { error?: string };
  if (!response.ok) throw new Error(body.error ?? `the server answered ${response.status}`);
  return body;
}
