// SVG to PNG without a browser, native module or system fonts: resvg in WebAssembly, Lato from npm.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { inflateSync } from "node:zlib";
import { initWasm, Resvg } from "@resvg/resvg-wasm";
import { messageOf } from "../../errors.ts";

export interface PngOptions {
  /** Pixels per SVG unit. @default 2, sharp on high-density screens and in print */
  readonly scale?: number;
}

const require = createRequire(import.meta.url);
let ready: Promise<Uint8Array[]> | undefined;

/**
 * Renders an SVG to PNG bytes.
 *
 * @example
 * const { metrics } = await readRun("runs/starter");
 * const png = await svgToPng(learningCurve(metrics), { scale: 2 });
 */
export async function svgToPng(svg: string, { scale = 2 }: PngOptions = {}): Promise<Uint8Array> {
  ready ??= load();
  const fontBuffers = await ready;
  const drawing = new Resvg(svg, {
    fitTo: { mode: "zoom", value: scale },
    font: { fontBuffers, loadSystemFonts: false, defaultFontFamily: "Lato", sansSerifFamily: "Lato" },
  });
  try {
    const image = drawing.render();
    const png = image.asPng();
    image.free();
    return png;
  } finally {
    drawing.free();
  }
}

async function load(): Promise<Uint8Array[]> {
  try {
    await initWasm(readFileSync(require.resolve("@resvg/resvg-wasm/index_bg.wasm")));
  } catch (error) {
    // The library can be initialized only once per process; the host program or another copy of this module may have done so.
    if (!/already initialized/i.test(messageOf(error))) throw error;
  }
  return [
    readFileSync(require.resolve("@fontsource/lato/files/lato-latin-400-normal.woff")),
    readFileSync(require.resolve("@fontsource/lato/files/lato-latin-700-normal.woff")),
  ].map(woffToTtf);
}

/** Unpacks a WOFF font (each table is deflated) into the TrueType file that resvg reads. */
function woffToTtf(woff: Uint8Array): Uint8Array {
  const from = new DataView(woff.buffer, woff.byteOffset, woff.byteLength);
  const tables = from.getUint16(12);
  const font = new Uint8Array(from.getUint32(16));
  const to = new DataView(font.buffer);
  const power = Math.floor(Math.log2(tables));
  to.setUint32(0, from.getUint32(4)); // flavour
  to.setUint16(4, tables);
  to.setUint16(6, 16 << power); // searchRange
  to.setUint16(8, power);
  to.setUint16(10, 16 * tables - (16 << power));
  let end = 12 + 16 * tables;
  for (let i = 0; i < tables; i++) {
    const entry = 44 + 20 * i;
    const [tag, offset, packed, size, checksum] = [0, 4, 8, 12, 16].map((at) => from.getUint32(entry + at)) as [
      number,
      number,
      number,
      number,
      number,
    ];
    [tag, checksum, end, size].forEach((word, k) => {
      to.setUint32(12 + 16 * i + 4 * k, word);
    });
    const bytes = woff.subarray(offset, offset + packed);
    font.set(packed < size ? inflateSync(bytes) : bytes, end);
    end += (size + 3) & ~3;
  }
  return font;
}
