// Allocator for one linear memory: first fit over a sorted list of gaps; neighbouring gaps are merged.
const ALIGN = 64; // a cache line, so that threads do not share one at a buffer's edge

interface Gap {
  start: number;
  end: number;
}

export interface Allocator {
  /** Returns the address of `bytes` free bytes; calls `grow` if there is no large enough gap. */
  alloc(bytes: number): number;
  free(address: number): void;
  /** Bytes allocated now; `peak` is the maximum so far. */
  readonly used: number;
  readonly peak: number;
}

/** Creates an allocator. `grow(end)` must make every address below `end` usable, or throw. */
export function createAllocator(start: number, grow: (end: number) => void): Allocator {
  const gaps: Gap[] = [];
  const sizes = new Map<number, number>();
  let end = align(start);
  let used = 0;
  let peak = 0;

  function take(size: number): number {
    for (const [i, gap] of gaps.entries()) {
      if (gap.end - gap.start < size) continue;
      const address = gap.start;
      gap.start += size;
      if (gap.start === gap.end) gaps.splice(i, 1);
      return address;
    }
    const last = gaps.at(-1);
    const address = last?.end === end ? last.start : end;
    grow(address + size);
    if (last?.end === end) gaps.pop();
    end = address + size;
    return address;
  }

  return {
    alloc(bytes) {
      const size = align(Math.max(bytes, 1));
      const address = take(size);
      sizes.set(address, size);
      used += size;
      peak = Math.max(peak, used);
      return address;
    },
    free(address) {
      const size = sizes.get(address);
      if (size === undefined) throw new Error(`nothing is allocated at ${address}`);
      sizes.delete(address);
      used -= size;
      const at = gaps.findIndex((gap) => gap.start > address);
      const index = at < 0 ? gaps.length : at;
      const [before, after] = [gaps[index - 1], gaps[index]];
      const joinsBefore = before?.end === address;
      const joinsAfter = after?.start === address + size;
      if (joinsBefore && joinsAfter) {
        before.end = after.end;
        gaps.splice(index, 1);
      } else if (joinsBefore) before.end += size;
      else if (joinsAfter) after.start = address;
      else gaps.splice(index, 0, { start: address, end: address + size });
    },
    get used() {
      return used;
    },
    get peak() {
      return peak;
    },
  };
}

function align(bytes: number): number {
  return Math.ceil(bytes / ALIGN) * ALIGN;
}
