// Pool of device memory: freed blocks are kept for reuse, since the driver's own allocation waits for the whole GPU.
// All work is on one stream, so a block can be reused at once. Sizes are rounded up to eighths of a power of two, so
// that similar ones match.
import { OOMError } from "../../errors.ts";

/** Where the pool gets its memory. */
export interface MemorySource {
  /** Returns an address, or undefined if there is not enough memory. */
  tryAlloc(bytes: number): number | undefined;
  free(address: number): void;
  memoryLeft(): number;
  /** Waits for work that may still use freed memory; returns false if waiting is impossible now. */
  synchronize(): boolean;
}

const SMALLEST = 512; // bytes

export class Pool {
  readonly #source: MemorySource;
  readonly #freeBlocks = new Map<number, number[]>();
  readonly #sizes = new Map<number, number>();
  used = 0;
  peak = 0;
  /** Bytes allocated from the driver, in use or free. */
  reserved = 0;

  constructor(source: MemorySource) {
    this.#source = source;
  }

  alloc(bytes: number): number {
    const size = roundedSize(bytes);
    const address = this.#freeBlocks.get(size)?.pop() ?? this.#reserve(size, bytes);
    this.#sizes.set(address, size);
    this.used += size;
    this.peak = Math.max(this.peak, this.used);
    return address;
  }

  free(address: number): void {
    const size = this.#sizes.get(address);
    if (size === undefined) throw new RangeError(`nothing is allocated at ${address}`);
    this.#sizes.delete(address);
    this.used -= size;
    const free = this.#freeBlocks.get(size);
    if (free) free.push(address);
    else this.#freeBlocks.set(size, [address]);
  }

  /** Finds the allocation that contains an address. */
  around(address: number): { address: number; bytes: number } {
    for (const [start, bytes] of this.#sizes) {
      if (address >= start && address < start + bytes) return { address: start, bytes };
    }
    throw new RangeError(`nothing is allocated around ${address}`);
  }

  /** Returns free blocks to the driver. */
  trim(): void {
    if (!this.#source.synchronize()) return;
    for (const [size, addresses] of this.#freeBlocks) {
      for (const address of addresses) this.#source.free(address);
      this.reserved -= size * addresses.length;
    }
    this.#freeBlocks.clear();
  }

  close(): void {
    this.trim();
    for (const address of this.#sizes.keys()) this.#source.free(address);
    this.#sizes.clear();
  }

  #reserve(size: number, asked: number): number {
    let address = this.#source.tryAlloc(size);
    if (address === undefined) {
      this.trim();
      address = this.#source.tryAlloc(size);
    }
    if (address === undefined) {
      const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(2)} GiB`;
      throw new OOMError({
        what: "the GPU is out of memory",
        value: `${gib(asked)} asked, ${gib(this.used)} in use, ${gib(this.#source.memoryLeft())} free`,
        remedy: "recompute activations, or lower the batch size, num_generations or the context length",
      });
    }
    this.reserved += size;
    return address;
  }
}

/** Bytes that an allocation takes: rounded up to eighths of a power of two. */
export function roundedSize(bytes: number): number {
  if (bytes <= SMALLEST) return SMALLEST;
  const step = Math.max(SMALLEST, 2 ** (Math.floor(Math.log2(bytes)) - 3));
  return Math.ceil(bytes / step) * step;
}
