// How products of some dozen rows are cut.
import { expect, test } from "vitest";
import { TILE, tileCut, tileGrid, tileName, tileShared } from "./tile.ts";

test.each([
  ["qkv", 4096, 1024, 128, 256, 4],
  ["output", 1024, 2048, 64, 256, 8],
  ["gate and up", 6144, 1024, 128, 512, 2],
  ["down", 1024, 3072, 64, 384, 8],
] as const)("of Qwen3-0.6B: %s, %i by %i, in blocks of %i by %i, %i in a cluster", (_, n, k, height, piece, pieces) => {
  const cut = tileCut(64, n, k, 132)!;
  expect(cut).toEqual({ height, piece, pieces, columns: 8 });
  const [tiles, inCluster] = tileGrid(n, cut);
  expect(tiles * height).toBe(n);
  expect(inCluster * piece).toBe(k);
  expect(tiles * inCluster).toBeLessThanOrEqual(132);
  expect(2 * tileShared(cut)).toBeLessThanOrEqual(227 << 10);
  for (const end of ["bf16", "gated", "added"] as const) expect(TILE.code).toContain(`(${tileName(end, cut)}, `);
});

test("what does not come out even is left to others", () => {
  expect(tileCut(65, 4096, 1024, 132)).toBeUndefined();
  expect(tileCut(32, 4096 + 32, 1024, 132)).toBeUndefined();
  expect(tileCut(32, 4096, 1280, 132)).toBeUndefined();
  expect(tileCut(20, 64, 256, 132)).toEqual({ height: 64, piece: 256, pieces: 1, columns: 4 });
  // More than the card holds: as few as can be.
  expect(tileCut(64, 151_936, 1024, 132)).toEqual({ height: 128, piece: 512, pieces: 2, columns: 8 });
});
