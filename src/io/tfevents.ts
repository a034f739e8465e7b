// TensorBoard's event files: records of protobuf messages, each framed by its length and masked CRC-32C checksums.
// Only what scalars need is encoded; the format is that of tensorflow/core/util/event.proto and tfrecord.

/** A message of an event file: its header, the start of a session, or scalars by tag. */
export interface TfEvent {
  /** Seconds since 1970. */
  readonly wall_time: number;
  readonly step?: number;
  readonly kind: "version" | "session_start" | "scalars";
  readonly scalars?: Readonly<Record<string, number>>;
}

/** An event as the bytes of one record. */
export function encodeTfEvent({ wall_time, step = 0, kind, scalars = {} }: TfEvent): Uint8Array {
  const content = {
    version: () => lengthDelimited(3, utf8("brain.Event:2")),
    // Tells readers to drop what earlier files in the folder have from this step on.
    session_start: () => lengthDelimited(7, [...tag(1, VARINT), 1]),
    scalars: () =>
      lengthDelimited(
        5,
        Object.entries(scalars).flatMap(([name, value]) => summaryValue(name, value)),
      ),
  }[kind]();
  return frame(Uint8Array.from([...fixed64(1, wall_time), ...tag(2, VARINT), ...varint(step), ...content]));
}

/** A record: length, checksum of the length, data, checksum of the data; all little-endian. */
function frame(data: Uint8Array): Uint8Array {
  const record = new Uint8Array(data.length + 16);
  const view = new DataView(record.buffer);
  view.setUint32(0, data.length, true);
  view.setUint32(8, maskedCrc(record.subarray(0, 8)), true);
  record.set(data, 12);
  view.setUint32(12 + data.length, maskedCrc(data), true);
  return record;
}

const [VARINT, FIXED64, BYTES, FIXED32] = [0, 1, 2, 5];

function tag(field: number, type: number): number[] {
  return [(field << 3) | type];
}

function summaryValue(name: string, value: number): number[] {
  const float = new Uint8Array(4);
  new DataView(float.buffer).setFloat32(0, value, true);
  return lengthDelimited(1, [...lengthDelimited(1, utf8(name)), ...tag(2, FIXED32), ...float]);
}

function lengthDelimited(field: number, bytes: ArrayLike<number>): number[] {
  return [...tag(field, BYTES), ...varint(bytes.length), ...Array.from(bytes)];
}

function fixed64(field: number, value: number): number[] {
  const double = new Uint8Array(8);
  new DataView(double.buffer).setFloat64(0, value, true);
  return [...tag(field, FIXED64), ...double];
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return [...bytes, rest];
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** CRC-32C (Castagnoli, reflected), one entry for each byte. */
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc;
});

/** The CRC, rotated and offset as the format requires, since a CRC of data that contains CRCs would be weak. */
function maskedCrc(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = CRC_TABLE[(crc ^ byte) & 255]! ^ (crc >>> 8);
  crc = ~crc >>> 0;
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}
