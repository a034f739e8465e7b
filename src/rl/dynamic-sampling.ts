// Refill, DAPO's dynamic sampling: questions are asked in the order of their queue until enough groups have spread.
//
// The batch is the first groups of the queue that have spread, and the queue moves on to the question after the last of
// them. That depends on the model and the queue alone. How far ahead groups are started depends on the machine, so what
// was started beyond the end of the batch is stopped, counted nowhere, and its questions are asked again in the next one.
import type { TokenSampler } from "../gym/players/index.ts";

/** A group that was played to the end. */
export interface PlayedGroup<E> {
  readonly episodes: readonly E[];
  readonly hasSpread: boolean;
}

export interface GroupOptions {
  readonly signal: AbortSignal;
  /** To be called as each episode ends. */
  readonly onEpisode: () => void;
}

export interface FillOptions<E> {
  /** Groups with spread that make a batch. */
  readonly wanted: number;
  /** Groups that are asked at most. */
  readonly limit: number;
  /** Episodes of a group. */
  readonly size: number;
  /** Share of groups that is expected to have spread; only decides how many are started early. */
  readonly expected: number;
  /** Plays the group of this number in the queue; rejects when it is aborted. */
  readonly play: (group: number, options: GroupOptions) => Promise<readonly E[]>;
  readonly hasSpread: (episodes: readonly E[]) => boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface FilledBatch<E> {
  /** In the order of the queue: up to the one that completes the batch, or as many as the limit allows. */
  readonly groups: readonly PlayedGroup<E>[];
  /** Groups that were started beyond them, which depends on the machine. */
  readonly stopped: number;
}

export async function fillBatch<E>(options: FillOptions<E>): Promise<FilledBatch<E>> {
  const { wanted, limit, size, expected, play, hasSpread } = options;
  const stop = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal;
  const ended: (PlayedGroup<E> | undefined)[] = [];
  let [started, found, running, free] = [0, 0, 0, wanted * size];
  let failure: { readonly error: unknown } | undefined;
  return new Promise((resolve, reject) => {
    const settle = () => {
      if (running > 0) return; // none is left running when this is over
      if (failure) return reject(failure.error);
      const groups = ended.slice(0, endOf(ended, wanted, limit)!) as PlayedGroup<E>[];
      resolve({ groups, stopped: started - groups.length });
    };
    /** One standard deviation below the number of groups with spread to expect when all that run have ended. */
    const likely = () => found + expected * running - Math.sqrt(expected * (1 - expected) * running);
    const startMore = () => {
      if (stop.signal.aborted) return;
      while (started < limit && free >= size && likely() < wanted) start(started++);
    };
    const start = (group: number) => {
      let left = size;
      const release = (episodes: number) => {
        left -= episodes;
        free += episodes;
      };
      running++;
      free -= size;
      const onEpisode = () => {
        release(1);
        startMore();
      };
      play(group, { signal, onEpisode })
        .then(
          (episodes) => {
            ended[group] = { episodes, hasSpread: hasSpread(episodes) };
            if (ended[group].hasSpread) found++;
            if (endOf(ended, wanted, limit) !== undefined) stop.abort();
          },
          (error: unknown) => {
            if (stop.signal.aborted) return;
            failure = { error };
            stop.abort();
          },
        )
        .finally(() => {
          running--;
          release(left);
          startMore();
          if (stop.signal.aborted) settle();
        });
    };
    startMore();
  });
}

/** How many groups have been asked when the batch is complete or the limit is met; undefined before that. */
function endOf(
  ended: readonly (PlayedGroup<unknown> | undefined)[],
  wanted: number,
  limit: number,
): number | undefined {
  let found = 0;
  for (let group = 0; group < limit; group++) {
    const played = ended[group];
    if (!played) return undefined;
    if (played.hasSpread && ++found === wanted) return group + 1;
  }
  return limit;
}

/** Whether some of the episodes are right and some wrong; those that could not be scored do not count. */
export function differInCorrectness(episodes: readonly { readonly correctness: 0 | 1 | null }[]): boolean {
  return [0, 1].every((outcome) => episodes.some(({ correctness }) => correctness === outcome));
}

/** An engine, and a way to wait for its samples: one that was aborted is still under way for a moment. */
export function awaitable(engine: TokenSampler): { readonly engine: TokenSampler; settled(): Promise<unknown> } {
  const samples = new Set<Promise<unknown>>();
  const sample: TokenSampler["sample"] = (request) => {
    const sampling = engine.sample(request);
    samples.add(sampling);
    const forget = () => void samples.delete(sampling);
    sampling.then(forget, forget);
    return sampling;
  };
  return { engine: { sample }, settled: () => Promise.allSettled(samples) };
}
