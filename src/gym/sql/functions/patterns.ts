// LIKE, GLOB and instr on SQLite's memory, with their steps counted. SQLite's versions cannot be interrupted, and some
// texts take time proportional to the product of both lengths, so a charge by length would not do.

/** A compiled pattern: at each position a code point to match, or one of the markers below. */
export interface Pattern {
  readonly places: readonly number[];
  readonly sets: readonly CharacterSet[];
  /** Whether ASCII letters match regardless of case. */
  readonly folds: boolean;
}

interface CharacterSet {
  /** Pairs of the first and last code point. */
  readonly ranges: readonly number[];
  readonly negated: boolean;
}

const [RUN, ONE, NEVER, FIRST_SET] = [-1, -2, -3, -4];

/** The result of a match: 1, 0, or undefined if it needs more than `allowed` steps. */
export interface Matched {
  value: number | undefined;
  steps: number;
}

/** Compiles LIKE's pattern; `escaping` is a code point, or 0. */
export function likePattern(heap: Uint8Array, start: number, end: number, escaping: number): Pattern {
  const points = codePoints(heap, start, end);
  const places: number[] = [];
  for (let i = 0; i < points.length; i++) {
    let point = points[i]!;
    if (point === escaping) {
      // Nothing follows the escape character.
      if (++i >= points.length) return { places: [NEVER], sets: [], folds: true };
      point = points[i]!;
    } else if (point === PERCENT || point === UNDERSCORE) {
      places.push(point === PERCENT ? RUN : ONE);
      continue;
    }
    places.push(lower(point));
  }
  return { places, sets: [], folds: true };
}

export function globPattern(heap: Uint8Array, start: number, end: number): Pattern {
  const points = codePoints(heap, start, end);
  const places: number[] = [];
  const sets: CharacterSet[] = [];
  for (let i = 0; i < points.length; i++) {
    const point = points[i]!;
    if (point === STAR || point === QUESTION) places.push(point === STAR ? RUN : ONE);
    else if (point !== OPEN) places.push(point);
    else {
      const ranges: number[] = [];
      const negated = points[i + 1] === CARET;
      let at = i + (negated ? 2 : 1);
      if (points[at] === CLOSE) {
        ranges.push(CLOSE, CLOSE); // as the first character in brackets it is literal
        at++;
      }
      let before = 0; // first code point of a range, if a hyphen follows
      for (; at < points.length && points[at] !== CLOSE; at++) {
        const one = points[at]!;
        const isRange = one === HYPHEN && before > 0 && at + 1 < points.length && points[at + 1] !== CLOSE;
        if (isRange) ranges.push(before, points[++at]!);
        else ranges.push(one, one);
        before = isRange ? 0 : one;
      }
      if (at >= points.length) return { places: [NEVER], sets: [], folds: false }; // the bracket is never closed
      places.push(FIRST_SET - sets.length);
      sets.push({ ranges, negated });
      i = at;
    }
  }
  return { places, sets, folds: false };
}

const [PERCENT, UNDERSCORE, STAR, QUESTION, OPEN, CLOSE, CARET, HYPHEN] = [
  0x25, 0x5f, 0x2a, 0x3f, 0x5b, 0x5d, 0x5e, 0x2d,
];

/**
 * Whether the pattern matches the text, which ends at its first NUL. A mismatch only extends the last wildcard, so
 * there are at most text × pattern steps.
 */
export function match(
  heap: Uint8Array,
  start: number,
  end: number,
  pattern: Pattern,
  allowed: number,
  out: Matched,
): void {
  const { places, sets, folds } = pattern;
  const length = places.length;
  let at = start;
  let place = 0;
  let retryAt = -1;
  let runStart = 0;
  let steps = 0;
  out.value = undefined;
  while (++steps <= allowed) {
    const wanted = place < length ? places[place]! : NEVER;
    if (wanted === RUN) {
      retryAt = place++;
      if (place === length) {
        out.value = 1; // a wildcard at the end matches the rest
        break;
      }
      runStart = findNext(heap, at, end, places[place]!, folds);
      steps += (runStart - at) >> 2; // a search takes less time than the steps below
      at = runStart;
      continue;
    }
    const byte = at < end ? heap[at]! : 0;
    if (byte === 0) {
      out.value = place === length ? 1 : 0;
      break;
    }
    let next = at + 1;
    let point = byte;
    if (byte >= 0xc0) {
      point = decode(heap, at, end);
      while (next < end && (heap[next]! & 0xc0) === 0x80) next++;
    } else if (folds && byte >= 65 && byte <= 90) point = byte + 32;
    if (wanted === point || wanted === ONE || (wanted <= FIRST_SET && inSet(sets[FIRST_SET - wanted]!, point))) {
      place++;
      at = next;
    } else if (retryAt >= 0) {
      place = retryAt + 1;
      at = runStart + 1;
      if (heap[runStart]! >= 0xc0) while (at < end && (heap[at]! & 0xc0) === 0x80) at++;
      runStart = findNext(heap, at, end, places[place]!, folds);
      steps += (runStart - at) >> 2;
      at = runStart;
    } else {
      out.value = 0;
      break;
    }
  }
  out.steps = steps;
}

/**
 * The next position where a pattern that continues with `wanted` can match. ASCII bytes never occur inside another
 * character.
 */
function findNext(heap: Uint8Array, from: number, end: number, wanted: number, folds: boolean): number {
  if (wanted <= 0 || wanted >= 0x80) return from;
  const other = folds && wanted >= 97 && wanted <= 122 ? wanted - 32 : wanted;
  let at = from;
  if (other === wanted) while (at < end && heap[at] !== wanted && heap[at] !== 0) at++;
  else while (at < end && heap[at] !== wanted && heap[at] !== other && heap[at] !== 0) at++;
  return at;
}

/** Position of one text in another, counted from 1 in UTF-8 characters or bytes; 0 if not found. */
export function indexOf(
  heap: Uint8Array,
  textStart: number,
  textEnd: number,
  partStart: number,
  partEnd: number,
  inCharacters: boolean,
  allowed: number,
  out: Matched,
): void {
  const length = partEnd - partStart;
  const first = heap[partStart];
  const last = textEnd - length;
  let steps = 1;
  let at = textStart;
  out.value = length === 0 ? 1 : 0;
  for (; length > 0 && at <= last; at++) {
    const from = at;
    while (at <= last && heap[at] !== first) at++;
    steps += 1 + ((at - from) >> 2); // a search takes less time than comparing
    if (steps > allowed) {
      out.value = undefined;
      break;
    }
    if (at > last) break;
    if (inCharacters && at > textStart && (heap[at]! & 0xc0) === 0x80) continue; // inside a character
    let same = 1;
    while (same < length && heap[at + same] === heap[partStart + same]) same++;
    steps += same;
    if (same < length) continue;
    let position = 1;
    for (let i = textStart + 1; i <= at; i++) if (!inCharacters || (heap[i]! & 0xc0) !== 0x80) position++;
    out.value = position;
    steps += (at - textStart) >> 2;
    break;
  }
  out.steps = steps;
}

function inSet({ ranges, negated }: CharacterSet, point: number): boolean {
  let seen = false;
  for (let i = 0; i < ranges.length && !seen; i += 2) seen = point >= ranges[i]! && point <= ranges[i + 1]!;
  return seen !== negated;
}

function lower(point: number): number {
  return point >= 65 && point <= 90 ? point + 32 : point;
}

/** Decodes code points up to the first NUL. */
export function codePoints(heap: Uint8Array, start: number, end: number): number[] {
  const points: number[] = [];
  for (let at = start; at < end && heap[at] !== 0; ) {
    points.push(decode(heap, at, end));
    if (heap[at++]! >= 0xc0) while (at < end && (heap[at]! & 0xc0) === 0x80) at++;
  }
  return points;
}

/** Decodes the code point at a byte by SQLite's rules, also for invalid UTF-8. */
function decode(heap: Uint8Array, at: number, end: number): number {
  const lead = heap[at]!;
  if (lead < 0xc0) return lead;
  let point =
    lead & (lead < 0xe0 ? 0x1f : lead < 0xf0 ? 0x0f : lead < 0xf8 ? 7 : lead < 0xfc ? 3 : lead < 0xfe ? 1 : 0);
  for (let i = at + 1; i < end && (heap[i]! & 0xc0) === 0x80; i++) point = ((point << 6) + (heap[i]! & 0x3f)) >>> 0;
  const isWrong = point < 0x80 || (point & 0xfffff800) >>> 0 === 0xd800 || (point & 0xfffffffe) >>> 0 === 0xfffe;
  return isWrong ? 0xfffd : point;
}
