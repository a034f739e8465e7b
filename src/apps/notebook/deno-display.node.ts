// The page of the notebook this runs in, through Deno's kernel; without one, the console.
import { svgToPng } from "../reports/index.node.ts";
import type { Board, Bundle, Shown } from "./display.ts";

/** Shows something below the cell that runs. */
export async function show(shown: Shown): Promise<void> {
  await notebookBoard()("shown", shown);
  await new Promise((resolve) => setTimeout(resolve, ARRIVAL_MS));
}

/** Deno's kernel may call a cell finished before its last output is out, and what comes later is lost. */
const ARRIVAL_MS = 100;

/** A board of its own: names on it are not those of other boards. */
export function notebookBoard(): Board {
  const broadcast = kernel();
  const there = new Set<string>();
  const number = ++boards;
  return async (name, shown) => {
    if (!broadcast) return console.log(String(shown));
    const message = there.has(name) ? "update_display_data" : "display_data";
    there.add(name);
    const transient = { display_id: `sqlenv-${number}-${name}` };
    await broadcast(message, { ...(await painted(shown.bundle)), transient });
  };
}

let boards = 0;

/** Pictures go out as PNG: viewers of saved notebooks strip an SVG of its styles, or show none at all. */
async function painted({ "image/svg+xml": svg, ...data }: Bundle): Promise<object> {
  if (svg === undefined) return { data, metadata: {} };
  const png = Buffer.from(await svgToPng(svg)).toString("base64");
  const width = Number(/ width="(\d+)"/.exec(svg)?.[1] ?? 900); // drawn twice as large, to be sharp
  return { data: { ...data, "image/png": png }, metadata: { "image/png": { width } } };
}

type Broadcast = (message: string, content: object) => Promise<void>;

function kernel(): Broadcast | undefined {
  const { Deno } = globalThis as { Deno?: { readonly jupyter?: { readonly broadcast: Broadcast } } };
  try {
    return Deno?.jupyter?.broadcast;
  } catch {
    return undefined; // outside a kernel, asking throws
  }
}
