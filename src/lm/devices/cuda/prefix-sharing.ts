// Prefix sharing in decoding: the contexts of a batch's rows form a tree of ranges, and a range that several rows see
// is read once for all of them. Neighbours in the tree share a tile of queries. A thread block has a tile, and its
// warps have jobs: pieces of the contexts of the tile's rows. The host builds the table when a batch is set up and
// again every few steps (lm/engine/sampling/graph-decoder.ts); in between, only the rows' own ranges grow. See
// kernels/fused-decode-step.ts.

/** Queries per tile: rows times heads per kv head. */
export const TILE_QUERIES = 16;
/** Warps per block. */
export const NEXT_WARPS = 8;
/** Maximum blocks per tile. */
export const SPLITS_MOST = 16;
/** Words in the header, in a task (its rows, their own ranges, the first job of each warp) and in a job. */
export const HEADER = 4;
export const TASK = 48;
export const TASK_ROWS = 4;
export const TASK_RANGES = TASK_ROWS + TILE_QUERIES;
export const TASK_JOBS = TASK_RANGES + TILE_QUERIES;
export const JOB = 8;

const KEYS = 16; // keys that a warp reads at once
const SHARED_LEAST = 32; // minimum tokens of a shared prefix for it to get its own job
const GROWTH = 32; // tokens by which a row is expected to grow
const STEPS_LEAST = 2; // minimum reads of KEYS per warp before another block is worth using
const OPEN = 0x7fffffff;

/** What the division of a batch into tiles and blocks depends on. */
export interface SharingShape {
  /** Number of rows whose queries fit one tile. */
  readonly together: number;
  /** Number of blocks per kv head that occupy the GPU. */
  readonly blocks: number;
}

/**
 * How a batch is divided. Depends only on the number of rows, so that a captured launch fits every batch of its size.
 */
export interface SharingCut {
  readonly rowsOfTile: number;
  readonly tiles: number;
  /** Maximum blocks of a tile. */
  readonly splits: number;
}

export function sharingCut(rows: number, { together, blocks }: SharingShape): SharingCut {
  const rowsOfTile = Math.min(together, Math.max(1, Math.ceil(rows / blocks)));
  const tiles = Math.ceil(rows / rowsOfTile);
  return { rowsOfTile, tiles, splits: Math.max(1, Math.min(SPLITS_MOST, Math.floor(blocks / tiles))) };
}

/** Words in a batch's table: tasks, jobs and padding rows. */
export function sharingLength(rows: number, shape: SharingShape): number {
  return copiesAt(rows, shape) + rows;
}

function copiesAt(rows: number, shape: SharingShape): number {
  const { tiles, splits } = sharingCut(rows, shape);
  return HEADER + TASK * tiles * splits + JOB * mostJobs(rows, shape);
}

/** Upper bound on jobs: dividing the work gives each warp at most three, and each unit one more; there are at most two units per row. */
function mostJobs(rows: number, shape: SharingShape): number {
  const { tiles, splits } = sharingCut(rows, shape);
  return 3 * NEXT_WARPS * tiles * splits + 2 * rows;
}

/** A unit of work: consecutive ranges of tokens that the same rows see. */
interface Unit {
  /** Index of the first range in the table of ranges. */
  readonly first: number;
  readonly count: number;
  readonly tokens: number;
  readonly rows: readonly number[];
  /** Whether the last range is a row's own, which grows. */
  readonly grows: boolean;
}

/** A piece of a unit. */
interface Job {
  readonly unit: Unit;
  readonly from: number;
  /** End of the piece; undefined: the end of the unit. */
  readonly to: number | undefined;
  readonly steps: number;
}

/** Writes the table of a batch from a layout's spans and ranges. */
export function fillSharing(
  out: Int32Array,
  rows: number,
  spans: Int32Array,
  ranges: Int32Array,
  shape: SharingShape,
): void {
  const { rowsOfTile, tiles, splits } = sharingCut(rows, shape);
  // A row that writes to the same KV block as another is a copy that pads the batch. It gets no tile: computed in
  // another tile, its keys could differ from the original's in the last bit and overwrite them.
  const owners = new Map<number, number>();
  for (let row = 0; row < rows; row++) {
    const own = ranges[3 * (spans[4 * row + 7]! - 1)]!;
    if (!owners.has(own)) owners.set(own, row);
  }
  const inTree = unitsOf([...owners.values()], spans, ranges, 1).flatMap(({ grows, rows: ends }) =>
    grows ? ends : [],
  );
  let jobs = 0;
  const jobsAt = HEADER + TASK * tiles * splits;
  out.fill(0, 0, jobsAt);
  const isOwner = new Set(owners.values());
  const copies = Array.from({ length: rows }, (_, row) => row).filter((row) => !isOwner.has(row));
  out.set([tiles, copies.length, copiesAt(rows, shape)]);
  out.set(copies, copiesAt(rows, shape));
  for (let tile = 0; tile * rowsOfTile < inTree.length; tile++) {
    const members = inTree.slice(tile * rowsOfTile, (tile + 1) * rowsOfTile);
    const units = unitsOf(members, spans, ranges, SHARED_LEAST);
    const steps = units.reduce((sum, unit) => sum + stepsOf(lengthOf(unit)), 0);
    const wanted = Math.min(splits, Math.ceil(steps / NEXT_WARPS / STEPS_LEAST));
    const used = wanted > 2 ? wanted : 1; // merging two blocks costs as much as it saves
    const bins = assignJobs(units, steps, used * NEXT_WARPS);
    for (let split = 0; split < used; split++) {
      const task = HEADER + TASK * (tile * splits + split);
      out.set([members.length, used], task);
      out.set(members, task + TASK_ROWS);
      out.set(
        members.map((row) => spans[4 * row + 7]! - 1),
        task + TASK_RANGES,
      );
      for (let warp = 0; warp < NEXT_WARPS; warp++) {
        out[task + TASK_JOBS + warp] = jobs;
        for (const job of bins[split * NEXT_WARPS + warp]!)
          out.set(wordsOf(job, members, ranges), jobsAt + JOB * jobs++);
      }
      out[task + TASK_JOBS + NEXT_WARPS] = jobs;
    }
  }
}

function lengthOf({ tokens, grows }: Unit): number {
  return tokens + (grows ? GROWTH : 0);
}

function stepsOf(tokens: number): number {
  return Math.ceil(tokens / KEYS);
}

/** Assigns jobs to warps; units are cut coarsely or finely, whichever gives the busiest warp less work. */
function assignJobs(units: readonly Unit[], steps: number, warps: number): Job[][] {
  let [best, least]: [Job[][], number] = [[], Number.POSITIVE_INFINITY];
  for (const pieces of [1, 2, 3]) {
    const most = Math.max(1, Math.ceil(steps / warps / pieces));
    const jobs = units.flatMap((unit) => cutUnit(unit, most)).sort((a, b) => b.steps - a.steps);
    const bins = Array.from({ length: warps }, (): Job[] => []);
    const loads = bins.map(() => 0);
    for (const job of jobs) {
      const lightest = loads.indexOf(Math.min(...loads));
      bins[lightest]!.push(job);
      loads[lightest]! += job.steps + 1; // starting a job takes about as long as a step
    }
    const highest = Math.max(...loads);
    if (highest < least) [best, least] = [bins, highest];
  }
  return best;
}

/** Cuts a unit into pieces of at most `most` steps. */
function cutUnit(unit: Unit, most: number): Job[] {
  const steps = stepsOf(lengthOf(unit));
  const count = Math.min(Math.ceil(steps / most), Math.max(1, stepsOf(unit.tokens)));
  const size = KEYS * Math.ceil(stepsOf(unit.tokens) / count);
  const jobs: Job[] = [];
  for (let from = 0; from < unit.tokens; from += size) {
    const isLast = from + size >= unit.tokens;
    const to = isLast ? lengthOf(unit) : from + size;
    jobs.push({
      unit,
      from,
      to: isLast && unit.grows ? undefined : Math.min(to, unit.tokens),
      steps: stepsOf(to - from),
    });
  }
  return jobs;
}

/**
 * Encodes a job for the kernel: its first range's address and capacity, first key and number of keys in it, next range,
 * length, own range, rows.
 */
function wordsOf({ unit, from, to }: Job, members: readonly number[], ranges: Int32Array): number[] {
  const own = unit.first + unit.count - 1;
  let [range, before] = [unit.first, 0];
  while (range < own && before + ranges[3 * range + 2]! <= from) before += ranges[3 * range++ + 2]!;
  const [block, capacity, tokens] = ranges.subarray(3 * range, 3 * range + 3) as unknown as [number, number, number];
  const there = range === own ? OPEN : before + tokens - from;
  // The kernel adds the tokens of its own range.
  const length = to === undefined ? unit.tokens - from - ranges[3 * own + 2]! : to - from;
  const mask = members.reduce((bits, row, i) => bits | (unit.rows.includes(row) ? 1 << i : 0), 0);
  return [block, capacity, from - before, there, range + 1, length, to === undefined ? own : -1, mask];
}

/** Cuts the tree of ranges into units where rows diverge; a prefix shorter than `least` tokens goes to each branch. */
function unitsOf(rows: readonly number[], spans: Int32Array, ranges: Int32Array, least: number): Unit[] {
  const units: Unit[] = [];
  const firstOf = (row: number) => spans[4 * row + 3]!;
  const depthOf = (row: number) => firstOf(row + 1) - firstOf(row);
  const keyOf = (row: number, depth: number) => {
    const at = 3 * (firstOf(row) + depth);
    return `${ranges[at]} ${ranges[at + 2]} ${depth === depthOf(row) - 1}`;
  };
  /** Visits rows that agree on all ranges before `depth`; ranges from `pending` on are in no unit yet. */
  const visit = (group: readonly number[], depth: number, pending: number): void => {
    const one = group[0]!;
    let at = depth;
    let branches = new Map<string, number[]>();
    for (; at < depthOf(one); at++) {
      branches = grouped(group, (row) => keyOf(row, at));
      if (branches.size > 1) break;
    }
    const first = firstOf(one) + pending;
    const count = at - pending;
    let tokens = 0;
    for (let i = first; i < first + count; i++) tokens += ranges[3 * i + 2]!;
    const isEnd = branches.size <= 1;
    const isUnit = isEnd || tokens >= least;
    if (isUnit && count > 0) units.push({ first, count, tokens, rows: group, grows: isEnd });
    if (!isEnd) for (const branch of branches.values()) visit(branch, at, isUnit ? at : pending);
  };
  for (const group of grouped(rows, (row) => keyOf(row, 0)).values()) visit(group, 0, 0);
  return units;
}

function grouped(rows: readonly number[], keyOf: (row: number) => string): Map<string, number[]> {
  const groups = new Map<string, number[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return groups;
}
