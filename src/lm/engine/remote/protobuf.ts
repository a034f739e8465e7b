// Protocol buffers' wire format, as far as the few messages of messages.ts need it.

const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Writes the fields of one message. Fields with a default value may be left out. */
export class ProtoWriter {
  readonly #parts: Uint8Array[] = [];

  varint(field: number, value: number): this {
    this.#parts.push(varint(field * 8 + VARINT), varint(value));
    return this;
  }

  double(field: number, value: number): this {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setFloat64(0, value, true);
    this.#parts.push(varint(field * 8 + FIXED64), bytes);
    return this;
  }

  bytes(field: number, value: Uint8Array): this {
    this.#parts.push(varint(field * 8 + LENGTH), varint(value.length), value);
    return this;
  }

  string(field: number, value: string): this {
    return this.bytes(field, encoder.encode(value));
  }

  message(field: number, write: (writer: ProtoWriter) => void): this {
    const writer = new ProtoWriter();
    write(writer);
    return this.bytes(field, writer.finish());
  }

  /** Whole numbers, packed. */
  packed(field: number, values: readonly number[]): this {
    return values.length === 0 ? this : this.bytes(field, concatenated(values.map(varint)));
  }

  finish(): Uint8Array {
    return concatenated(this.#parts);
  }
}

/** The fields of one message, by number. Unknown fields are kept and ignored; throws RangeError if it is malformed. */
export class ProtoReader {
  readonly #fields = new Map<number, (number | Uint8Array)[]>();

  constructor(message: Uint8Array) {
    const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
    let at = 0;
    const readVarint = (): number => {
      let [value, scale] = [0n, 0n];
      for (;;) {
        if (at >= message.length || scale > 63n) throw new RangeError("a number is cut off");
        const byte = message[at++]!;
        value |= BigInt(byte & 0x7f) << scale;
        scale += 7n;
        if (byte < 0x80) return Number(BigInt.asIntN(64, value));
      }
    };
    const skip = (length: number): number => {
      if (length < 0 || at + length > message.length) throw new RangeError("a field is cut off");
      at += length;
      return at - length;
    };
    while (at < message.length) {
      const tag = readVarint();
      const wire = tag % 8;
      let value: number | Uint8Array;
      if (wire === VARINT) value = readVarint();
      else if (wire === FIXED64) value = view.getFloat64(skip(8), true);
      else if (wire === FIXED32) value = view.getFloat32(skip(4), true);
      else if (wire === LENGTH) {
        const length = readVarint();
        const from = skip(length);
        value = message.subarray(from, from + length);
      } else throw new RangeError(`a field has the unknown wire type ${wire}`);
      const field = Math.floor(tag / 8);
      const values = this.#fields.get(field);
      if (values) values.push(value);
      else this.#fields.set(field, [value]);
    }
  }

  has(field: number): boolean {
    return this.#fields.has(field);
  }

  /** The value of a number field; of several, the last one counts. @default 0 */
  number(field: number): number {
    const value = this.#fields.get(field)?.at(-1) ?? 0;
    return typeof value === "number" ? value : mismatch(field);
  }

  bytes(field: number): Uint8Array {
    return this.#all(field).at(-1) ?? new Uint8Array(0);
  }

  string(field: number): string {
    return decoder.decode(this.bytes(field));
  }

  messages(field: number): ProtoReader[] {
    return this.#all(field).map((bytes) => new ProtoReader(bytes));
  }

  /** Repeated whole numbers, packed or not. */
  numbers(field: number): number[] {
    return (this.#fields.get(field) ?? []).flatMap((value) => {
      if (typeof value === "number") return value;
      const packed = new Uint8Array(value.length + 2); // as the field 1 of a message, once per number
      const found: number[] = [];
      for (let from = 0; from < value.length; ) {
        let end = from;
        while (end < value.length && value[end]! >= 0x80) end++;
        packed[0] = 8;
        packed.set(value.subarray(from, end + 1), 1);
        found.push(new ProtoReader(packed.subarray(0, end + 2 - from)).number(1));
        from = end + 1;
      }
      return found;
    });
  }

  #all(field: number): Uint8Array[] {
    return (this.#fields.get(field) ?? []).map((value) => (typeof value === "number" ? mismatch(field) : value));
  }
}

function mismatch(field: number): never {
  throw new RangeError(`field ${field} has another type`);
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let left = BigInt.asUintN(64, BigInt(value));
  do {
    const low = Number(left & 0x7fn);
    left >>= 7n;
    bytes.push(left > 0n ? low | 0x80 : low);
  } while (left > 0n);
  return Uint8Array.from(bytes);
}

function concatenated(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
