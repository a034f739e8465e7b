// Dynamic sampling (DAPO): tasks are played in the order of their queue until enough groups have spread, that is, both
// right and wrong episodes.
//
// The batch ends with the group that completes it, and the next batch begins with the task after that one. This depends
// only on the model and the queue. How far ahead groups are started depends on the machine, so groups that were started
// after the end of the batch are stopped and discarded, and the next batch plays their tasks again.

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
  /** Number of groups with spread that a batch needs. */
  readonly wanted: number;
  /** Maximum number of groups to play. */
  readonly limit: number;
  /** Episodes per group. */
  readonly size: number;
  /** Expected share of groups with spread; only decides how many are started early. */
  readonly expected: number;
  /** Plays the group at this index of the queue; rejects when it is aborted. */
  readonly play: (group: number, options: GroupOptions) => Promise<readonly E[]>;
  readonly hasSpread: (episodes: readonly E[]) => boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface FilledBatch<E> {
  /** The groups in the order of the queue, up to the one that completes the batch; at most `limit` groups. */
  readonly groups: readonly PlayedGroup<E>[];
  /** Number of groups that were started after these and discarded; depends on the machine's speed. */
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
      if (running > 0) return; // no group is left running when the promise settles
      if (failure) return reject(failure.error);
      const groups = ended.slice(0, endOf(ended, wanted, limit)!) as PlayedGroup<E>[];
      resolve({ groups, stopped: started - groups.length });
    };
    /** Expected number of groups with spread once all running ones have ended, minus one standard deviation. */
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

/** Number of groups in the batch once it is complete or has reached the limit; undefined before that. */
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

/** Whether some episodes are right and some wrong; those that could not be scored do not count. */
export function differInCorrectness(episodes: readonly { readonly correctness: 0 | 1 | null }[]): boolean {
  return [0, 1].every((outcome) => episodes.some(({ correctness }) => correctness === outcome));
}
