// Who reads which part of a context: the rows of a decode batch form a tree of ranges, and what several of them see is one job
// for all. The table is made on the host when a batch is set up and serves until it is set up anew; only a row's own range grows
// meanwhile. See kernels/attentionNext.ts.

/** Words before the table of parts, of a job, and how many of a job's are its rows. */
export const HEADER = 4;
export const JOB = 24;
export const JOB_ROWS = 16;
/** Parts of a row at most. */
export const MOST_PARTS = 32;

const KEYS = 16; // a warp reads together
const SHARED_LEAST = 32; // tokens worth a job of their own
const GROWTH = 32; // tokens a row is expected to grow by

/** What the cut depends on. */
export interface SharingShape {
  /** Rows whose queries fit one tile: 16 over the heads of a kv head. */
  readonly together: number;
  /** Jobs that keep the card busy, for one kv head. */
  readonly wanted: number;
}

/** Ranges in a row that some rows have in common. */
interface Unit {
  /** Of the table of ranges. */
  readonly first: number;
  readonly count: number;
  readonly tokens: number;
  readonly rows: readonly number[];
  /** Whether the last range is the rows' own. */
  readonly grows: boolean;
}

/** Jobs of a batch at most. */
export function mostJobs(rows: number): number {
  return 4 * rows + 64;
}

/** Words the table of a batch needs. */
export function sharingLength(rows: number): number {
  return HEADER + rows + JOB * mostJobs(rows);
}

/** Writes the table for a batch given as a layout's segments and ranges. */
export function fillSharing(
  out: Int32Array,
  rows: number,
  segments: Int32Array,
  ranges: Int32Array,
  { together, wanted }: SharingShape,
): void {
  // Less is shared, and splits are longer, until it fits: nothing shared and nothing split always does.
  for (let [least, factor] = [SHARED_LEAST, 1]; ; least *= 4, factor *= 2) {
    const units = unitsOf(rows, segments, ranges, least).flatMap((unit) => tilesOf(unit, together));
    const lengthOf = ({ tokens, grows }: Unit) => tokens + (grows ? GROWTH : 0);
    const keys = units.reduce((sum, unit) => sum + lengthOf(unit), 0);
    const chunk = factor * KEYS * Math.max(2, Math.ceil(keys / wanted / KEYS));
    const splits = units.map((unit) => (factor > 64 ? 1 : Math.max(1, Math.ceil(lengthOf(unit) / chunk))));
    if (write(out, rows, units, splits)) return;
  }
}

/** The tree of ranges, cut where rows part; beginnings shorter than `least` tokens are left to each branch. */
function unitsOf(rows: number, segments: Int32Array, ranges: Int32Array, least: number): Unit[] {
  const units: Unit[] = [];
  const firstOf = (row: number) => segments[4 * row + 3]!;
  const depthOf = (row: number) => firstOf(row + 1) - firstOf(row);
  const keyOf = (row: number, depth: number) => {
    const at = 3 * (firstOf(row) + depth);
    return `${ranges[at]} ${ranges[at + 2]} ${depth === depthOf(row) - 1}`;
  };
  /** Rows that agree on all ranges before `depth`; those from `pending` on are in no unit yet. */
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
  const all = Array.from({ length: rows }, (_, row) => row);
  for (const group of grouped(all, (row) => keyOf(row, 0)).values()) visit(group, 0, 0);
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

/** A unit for every so many rows. */
function tilesOf(unit: Unit, together: number): Unit[] {
  const tiles: Unit[] = [];
  for (let at = 0; at < unit.rows.length; at += together)
    tiles.push({ ...unit, rows: unit.rows.slice(at, at + together) });
  return tiles;
}

/** False, and the table not to be used, where it does not fit. */
function write(out: Int32Array, rows: number, units: readonly Unit[], splits: readonly number[]): boolean {
  const jobs = splits.reduce((sum, n) => sum + n, 0);
  if (jobs > mostJobs(rows)) return false;
  const parts = out.subarray(HEADER, HEADER + rows).fill(0);
  out.fill(0, 0, HEADER);
  out[0] = jobs;
  let at = HEADER + rows;
  for (const [i, { first, count, rows: members, grows }] of units.entries()) {
    for (let split = 0; split < splits[i]!; split++, at += JOB) {
      out.set([first, count, split, splits[i]!, members.length, grows ? 1 : 0], at);
      for (const [m, row] of members.entries()) {
        const part = parts[row]!;
        if (part >= MOST_PARTS) return false;
        out[at + JOB - JOB_ROWS + m] = row | (part << 16);
        parts[row] = part + 1;
      }
    }
  }
  return true;
}
