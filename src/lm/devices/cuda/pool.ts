// Device memory that is kept when it is freed: the driver's own allocation waits for the whole card. Since all work is in one
// stream, a block can be given out again at once. Sizes are rounded up to an eighth, so that similar ones meet.
import { OOMError } from "../../../errors.ts";

/** Where memory comes from. */
export interface MemorySource {
  /** An address, or undefined when there is not enough. */
  tryAlloc(bytes: number): number | undefined;
  free(address: number): void;
  memoryLeft(): number;
  /** Waits for the work that may still use freed memory; false where that cannot be done now. */
  synchronize(): boolean;
}

const SMALLEST = 512; // bytes

export class Pool {
  readonly #source: MemorySource;
  readonly #kept = new Map<number, number[]>();
  readonly #sizes = new Map<number, number>();
  used = 0;
  peak = 0;
  /** Asked of the driver, used or kept. */
  reserved = 0;

  constructor(source: MemorySource) {
    this.#source = source;
  }

  alloc(bytes: number): number {
    const size = roundedSize(bytes);
    const address = this.#kept.get(size)?.pop() ?? this.#reserve(size, bytes);
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
    const kept = this.#kept.get(size);
    if (kept) kept.push(address);
    else this.#kept.set(size, [address]);
  }

  /** The allocation an address lies in. */
  around(address: number): { address: number; bytes: number } {
    for (const [start, bytes] of this.#sizes) {
      if (address >= start && address < start + bytes) return { address: start, bytes };
    }
    throw new RangeError(`nothing is allocated around ${address}`);
  }

  /** Gives kept blocks back to the driver. */
  trim(): void {
    if (!this.#source.synchronize()) return;
    for (const [size, addresses] of this.#kept) {
      for (const address of addresses) this.#source.free(address);
      this.reserved -= size * addresses.length;
    }
    this.#kept.clear();
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

/** Bytes an allocation really takes: sizes in eighths of a power of two. */
export function roundedSize(bytes: number): number {
  if (bytes <= SMALLEST) return SMALLEST;
  const step = Math.max(SMALLEST, 2 ** (Math.floor(Math.log2(bytes)) - 3));
  return Math.ceil(bytes / step) * step;
}
