// Staging buffers between host and GPU: pinned memory that the GPU reads asynchronously, so that writes do not wait.
import type { Driver } from "./driver.node.ts";

const HALF = 8 * 2 ** 20; // bytes of one of the two halves
const LATER = 65_536; // maximum bytes of a deferred read
const EVENT_WITHOUT_TIME = 2;

interface Half {
  readonly address: number;
  readonly bytes: Uint8Array;
  readonly event: bigint;
  used: number;
}

export class Staging {
  readonly #driver: Driver;
  readonly #halves: readonly Half[];
  readonly #down: { address: number; bytes: ArrayBuffer };
  readonly #later: readonly { readonly address: number; readonly bytes: ArrayBuffer; readonly event: bigint }[];
  #nextLater = 0;
  #at = 0;

  constructor(driver: Driver) {
    this.#driver = driver;
    this.#halves = [0, 1].map(() => {
      const { address, bytes } = driver.hostAlloc(HALF);
      return {
        address,
        bytes: new Uint8Array(bytes),
        event: BigInt(driver.out("cuEventCreate", EVENT_WITHOUT_TIME)),
        used: 0,
      };
    });
    this.#down = driver.hostAlloc(HALF);
    this.#later = [0, 1, 2, 3].map(() => ({
      ...driver.hostAlloc(LATER),
      event: BigInt(driver.out("cuEventCreate", EVENT_WITHOUT_TIME)),
    }));
  }

  /** Queues a copy to the GPU; the data may be changed right afterwards. */
  up(to: number, data: Uint8Array): void {
    for (let from = 0; from < data.length; ) {
      const half = this.#half();
      const count = Math.min(data.length - from, HALF - half.used);
      half.bytes.set(data.subarray(from, from + count), half.used);
      this.#driver.call("cuMemcpyHtoDAsync_v2", to + from, half.address + half.used, count, this.#driver.stream);
      half.used = (half.used + count + 15) & ~15;
      from += count;
    }
  }

  /** Copies memory to the host after all queued work. */
  down(from: number, length: number): Uint8Array<ArrayBuffer> {
    const data = new Uint8Array(length);
    for (let at = 0; at < length; at += HALF) {
      const count = Math.min(HALF, length - at);
      this.#driver.call("cuMemcpyDtoHAsync_v2", this.#down.address, from + at, count, this.#driver.stream);
      this.#driver.synchronize();
      data.set(new Uint8Array(this.#down.bytes, 0, count), at);
    }
    return data;
  }

  /**
   * Queues a copy of at most `LATER` bytes; the returned function waits for it. Only the latest few may be waited for.
   */
  downLater(from: number, length: number): () => Uint8Array<ArrayBuffer> {
    if (length > LATER) throw new RangeError(`${length} bytes are too many to read later`);
    const slot = this.#later[this.#nextLater]!;
    this.#nextLater = (this.#nextLater + 1) % this.#later.length;
    this.#driver.call("cuMemcpyDtoHAsync_v2", slot.address, from, length, this.#driver.stream);
    this.#driver.call("cuEventRecord", slot.event, this.#driver.stream);
    return () => {
      this.#driver.call("cuEventSynchronize", slot.event);
      return new Uint8Array(slot.bytes.slice(0, length));
    };
  }

  close(): void {
    for (const { address, event } of this.#later) {
      this.#driver.call("cuEventDestroy_v2", event);
      this.#driver.call("cuMemFreeHost", address);
    }
    for (const { address, event } of this.#halves) {
      this.#driver.call("cuEventDestroy_v2", event);
      this.#driver.call("cuMemFreeHost", address);
    }
    this.#driver.call("cuMemFreeHost", this.#down.address);
  }

  /** The half to fill. A full half is left to the GPU, and the other is used once the GPU is done with it. */
  #half(): Half {
    const half = this.#halves[this.#at]!;
    if (half.used < HALF) return half;
    this.#driver.call("cuEventRecord", half.event, this.#driver.stream);
    this.#at = 1 - this.#at;
    const other = this.#halves[this.#at]!;
    this.#driver.call("cuEventSynchronize", other.event);
    other.used = 0;
    return other;
  }
}
