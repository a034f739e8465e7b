// bf16 copies of f32 parameters, one per allocation, refreshed when first needed after a change.
import type { Buffer } from "../device.ts";
import type { Pool } from "../pool.ts";

interface Copy {
  readonly from: number;
  readonly bytes: number;
  readonly address: number;
  stale: boolean;
}

/** Converts `length` floats at `from` to bf16 at `to`. */
type Convert = (from: number, to: number, length: number) => void;

export class WeightCopies {
  readonly #pool: Pick<Pool, "alloc" | "around">;
  readonly #convert: Convert;
  #copies: Copy[] = [];

  constructor(pool: Pick<Pool, "alloc" | "around">, convert: Convert) {
    this.#pool = pool;
    this.#convert = convert;
  }

  /** The address of an up-to-date copy of a parameter. */
  addressOf({ address }: Buffer): number {
    let copy = this.#find(address);
    if (!copy) {
      const { address: from, bytes } = this.#pool.around(address);
      copy = { from, bytes, address: this.#pool.alloc(bytes / 2), stale: true };
      this.#copies.push(copy);
    }
    this.#refresh(copy);
    return copy.address + (address - copy.from) / 2;
  }

  /** Marks a parameter's copy as outdated. */
  markStale({ address }: Buffer): void {
    const copy = this.#find(address);
    if (copy) copy.stale = true;
  }

  refreshAll(): void {
    for (const copy of this.#copies) this.#refresh(copy);
  }

  /** Drops the copy of the allocation at this address; returns the addresses of its memory. */
  drop(address: number): number[] {
    const copy = this.#copies.find(({ from }) => from === address);
    if (!copy) return [];
    this.#copies = this.#copies.filter((other) => other !== copy);
    return [copy.address];
  }

  #find(address: number): Copy | undefined {
    return this.#copies.find(({ from, bytes }) => address >= from && address < from + bytes);
  }

  #refresh(copy: Copy): void {
    if (!copy.stale) return;
    this.#convert(copy.from, copy.address, copy.bytes / 4);
    copy.stale = false;
  }
}
