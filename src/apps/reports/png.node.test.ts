// Drawing works however often, and by whomever, its library was initialized.
import { expect, test, vi } from "vitest";

const SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="4" height="3"><rect width="4" height="3"/></svg>';
const PNG = [0x89, 0x50, 0x4e, 0x47];

test("a second copy of the module works too", async () => {
  for (let copy = 0; copy < 2; copy++) {
    vi.resetModules();
    const { svgToPng } = await import("./png.node.ts");
    expect([...(await svgToPng(SVG)).subarray(0, 4)]).toEqual(PNG);
  }
});
