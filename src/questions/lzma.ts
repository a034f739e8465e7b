// The LZMA algorithm: a range decoder whose bits choose between a literal byte and a copy of earlier output.
// Names follow the LZMA specification; probabilities of all contexts lie in one array, each context at an offset.
import { archiveError } from "./archive.ts";

const PROBABILITY_BITS = 11;
const HALF = 1 << (PROBABILITY_BITS - 1);
const ADAPT_SHIFT = 5;
const TOP = 1 << 24;

const STATES = 12;
const MAX_POSITION_STATES = 16;
const FIRST_MATCH_LENGTH = 2;

// Layout of one length decoder: two choice bits, 8-way trees per position state (low, mid), one 256-way tree (high).
const LENGTH_LOW = 2;
const LENGTH_MID = LENGTH_LOW + MAX_POSITION_STATES * 8;
const LENGTH_HIGH = LENGTH_MID + MAX_POSITION_STATES * 8;
const LENGTH_SIZE = LENGTH_HIGH + 256;

// Layout of the probabilities; literals come last because their number depends on the properties.
const IS_MATCH = 0;
const IS_REP = IS_MATCH + STATES * MAX_POSITION_STATES;
const IS_REP_G0 = IS_REP + STATES;
const IS_REP_G1 = IS_REP_G0 + STATES;
const IS_REP_G2 = IS_REP_G1 + STATES;
const IS_REP0_LONG = IS_REP_G2 + STATES;
const DISTANCE_SLOT = IS_REP0_LONG + STATES * MAX_POSITION_STATES;
const DISTANCE_SPECIAL = DISTANCE_SLOT + 4 * 64;
const DISTANCE_ALIGN = DISTANCE_SPECIAL + 128;
const MATCH_LENGTH = DISTANCE_ALIGN + 16;
const REP_LENGTH = MATCH_LENGTH + LENGTH_SIZE;
const LITERAL = REP_LENGTH + LENGTH_SIZE;

/** A decoder that keeps its state from chunk to chunk. */
export class Lzma {
  /** Copies may not reach back beyond this place of the output. */
  dictionaryStart = 0;
  #probabilities = new Uint16Array(LITERAL);
  #state = 0;
  #rep0 = 0;
  #rep1 = 0;
  #rep2 = 0;
  #rep3 = 0;
  #literalContextBits = 0; // lc
  #literalPositionMask = 0; // 2^lp - 1
  #positionMask = 0; // 2^pb - 1

  // The range decoder.
  #input: Uint8Array = new Uint8Array();
  #at = 0;
  #range = 0;
  #code = 0;

  /** Takes the properties byte, (pb * 5 + lp) * 9 + lc. */
  setProperties(byte: number): void {
    const lc = byte % 9;
    const lp = Math.floor(byte / 9) % 5;
    const pb = Math.floor(byte / 45);
    if (pb > 4 || lc + lp > 4) throw damaged();
    this.#literalContextBits = lc;
    this.#literalPositionMask = (1 << lp) - 1;
    this.#positionMask = (1 << pb) - 1;
    this.#probabilities = new Uint16Array(LITERAL + (0x300 << (lc + lp)));
  }

  /** Forgets what was learned from earlier chunks, keeping their output. */
  reset(): void {
    this.#probabilities.fill(HALF);
    this.#state = this.#rep0 = this.#rep1 = this.#rep2 = this.#rep3 = 0;
  }

  /** Decodes one chunk into `out` from `start` to `end`; it must use up `input` exactly. */
  decode(input: Uint8Array, out: Uint8Array, start: number, end: number): void {
    if (input.length < 5 || input[0] !== 0) throw damaged();
    this.#input = input;
    this.#at = 5;
    this.#range = 0xffffffff;
    this.#code = ((input[1]! << 24) | (input[2]! << 16) | (input[3]! << 8) | input[4]!) >>> 0;
    let position = start;
    while (position < end) {
      const positionState = (position - this.dictionaryStart) & this.#positionMask;
      if (this.#bit(IS_MATCH + this.#state * MAX_POSITION_STATES + positionState) === 0) {
        out[position] = this.#literal(out, position);
        position++;
        this.#state = this.#state < 4 ? 0 : this.#state < 10 ? this.#state - 3 : this.#state - 6;
        continue;
      }
      const length = this.#matchLength(positionState);
      const from = position - this.#rep0 - 1;
      if (from < this.dictionaryStart || position + length > end) throw damaged();
      for (let i = 0; i < length; i++) out[position + i] = out[from + i]!; // may overlap, so byte by byte
      position += length;
    }
    this.#normalize();
    if (this.#code !== 0 || this.#at !== input.length) throw damaged();
  }

  /** A byte, guessed from the one before and, after a copy, from the one the copy would have continued with. */
  #literal(out: Uint8Array, position: number): number {
    const before = position > this.dictionaryStart ? out[position - 1]! : 0;
    const place = (position - this.dictionaryStart) & this.#literalPositionMask;
    const context = (place << this.#literalContextBits) + (before >> (8 - this.#literalContextBits));
    const base = LITERAL + 0x300 * context;
    let symbol = 1;
    if (this.#state >= 7) {
      let expected = out[position - this.#rep0 - 1] ?? 0;
      while (symbol < 0x100) {
        const expectedBit = (expected >> 7) & 1;
        expected <<= 1;
        const bit = this.#bit(base + ((1 + expectedBit) << 8) + symbol);
        symbol = (symbol << 1) | bit;
        if (bit !== expectedBit) break;
      }
    }
    while (symbol < 0x100) symbol = (symbol << 1) | this.#bit(base + symbol);
    return symbol & 0xff;
  }

  /** Reads what is copied: sets rep0 to the distance less one, and returns the length. */
  #matchLength(positionState: number): number {
    const state = this.#state;
    if (this.#bit(IS_REP + state) === 0) {
      this.#rep3 = this.#rep2;
      this.#rep2 = this.#rep1;
      this.#rep1 = this.#rep0;
      this.#state = state < 7 ? 7 : 10;
      const length = this.#length(MATCH_LENGTH, positionState);
      this.#rep0 = this.#distance(length);
      return length;
    }
    if (this.#bit(IS_REP_G0 + state) === 0) {
      if (this.#bit(IS_REP0_LONG + state * MAX_POSITION_STATES + positionState) === 0) {
        this.#state = state < 7 ? 9 : 11;
        return 1;
      }
    } else {
      let distance = this.#rep1;
      if (this.#bit(IS_REP_G1 + state) === 1) {
        if (this.#bit(IS_REP_G2 + state) === 0) distance = this.#rep2;
        else {
          distance = this.#rep3;
          this.#rep3 = this.#rep2;
        }
        this.#rep2 = this.#rep1;
      }
      this.#rep1 = this.#rep0;
      this.#rep0 = distance;
    }
    this.#state = state < 7 ? 8 : 11;
    return this.#length(REP_LENGTH, positionState);
  }

  #length(base: number, positionState: number): number {
    if (this.#bit(base) === 0) return FIRST_MATCH_LENGTH + this.#tree(base + LENGTH_LOW + positionState * 8, 3);
    if (this.#bit(base + 1) === 0) return FIRST_MATCH_LENGTH + 8 + this.#tree(base + LENGTH_MID + positionState * 8, 3);
    return FIRST_MATCH_LENGTH + 16 + this.#tree(base + LENGTH_HIGH, 8);
  }

  /** The distance less one: a slot of 6 bits gives its two top bits and their place, further bits follow. */
  #distance(length: number): number {
    const slot = this.#tree(DISTANCE_SLOT + Math.min(length - FIRST_MATCH_LENGTH, 3) * 64, 6);
    if (slot < 4) return slot;
    const bits = (slot >> 1) - 1;
    const top = 2 | (slot & 1);
    if (slot < 14) {
      const base = top << bits;
      return base + this.#reverseTree(DISTANCE_SPECIAL + base - slot, bits);
    }
    return (top * 2 ** bits + this.#plainBits(bits - 4) * 16 + this.#reverseTree(DISTANCE_ALIGN, 4)) >>> 0;
  }

  #tree(base: number, bits: number): number {
    let symbol = 1;
    for (let i = 0; i < bits; i++) symbol = (symbol << 1) | this.#bit(base + symbol);
    return symbol - (1 << bits);
  }

  #reverseTree(base: number, bits: number): number {
    let [symbol, value] = [1, 0];
    for (let i = 0; i < bits; i++) {
      const bit = this.#bit(base + symbol);
      symbol = (symbol << 1) | bit;
      value |= bit << i;
    }
    return value;
  }

  /** One bit by its context's probability, which moves towards what was seen. */
  #bit(context: number): 0 | 1 {
    this.#normalize();
    const probability = this.#probabilities[context]!;
    const bound = (this.#range >>> PROBABILITY_BITS) * probability;
    if (this.#code < bound) {
      this.#range = bound;
      this.#probabilities[context] = probability + ((2 * HALF - probability) >> ADAPT_SHIFT);
      return 0;
    }
    this.#range -= bound;
    this.#code -= bound;
    this.#probabilities[context] = probability - (probability >> ADAPT_SHIFT);
    return 1;
  }

  /** Bits without a context. */
  #plainBits(count: number): number {
    let value = 0;
    for (let i = 0; i < count; i++) {
      this.#normalize();
      this.#range >>>= 1;
      const bit = this.#code >= this.#range ? 1 : 0;
      if (bit) this.#code -= this.#range;
      value = value * 2 + bit;
    }
    return value;
  }

  #normalize(): void {
    if (this.#range >= TOP) return;
    if (this.#at >= this.#input.length) throw damaged();
    this.#range = (this.#range << 8) >>> 0;
    this.#code = ((this.#code << 8) | this.#input[this.#at++]!) >>> 0;
  }
}

function damaged() {
  return archiveError({ what: "the .xz file is damaged", value: "compressed data" });
}
