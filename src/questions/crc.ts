// Checksums of archives: CRC-32 (zip, gzip, xz) and CRC-64 (xz), both table-driven and reflected.

const TABLE_32 = Int32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** CRC-32 as an unsigned number. */
export function crc32(bytes: Uint8Array): number {
  let crc = -1;
  for (let i = 0; i < bytes.length; i++) crc = (crc >>> 8) ^ TABLE_32[(crc ^ bytes[i]!) & 0xff]!;
  return ~crc >>> 0;
}

// 64 bits as two 32-bit halves: bigint arithmetic would be a hundred times slower.
const [LOW_64, HIGH_64] = [new Int32Array(256), new Int32Array(256)];
for (let byte = 0; byte < 256; byte++) {
  let [low, high] = [byte, 0];
  for (let bit = 0; bit < 8; bit++) {
    const odd = low & 1;
    low = (low >>> 1) | (high << 31);
    high >>>= 1;
    if (odd) [low, high] = [low ^ 0xd7870f42, high ^ 0xc96c5795];
  }
  [LOW_64[byte], HIGH_64[byte]] = [low, high];
}

/** CRC-64 (ECMA-182) as its low and high halves, unsigned. */
export function crc64(bytes: Uint8Array): readonly [low: number, high: number] {
  let [low, high] = [-1, -1];
  for (let i = 0; i < bytes.length; i++) {
    const index = (low ^ bytes[i]!) & 0xff;
    low = ((low >>> 8) | (high << 24)) ^ LOW_64[index]!;
    high = (high >>> 8) ^ HIGH_64[index]!;
  }
  return [~low >>> 0, ~high >>> 0];
}
