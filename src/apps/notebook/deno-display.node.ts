// Displays in the running notebook through Deno's Jupyter kernel; without one, on the console.
import { svgToPng } from "../reports/index.node.ts";
import type { Board, Bundle, Shown } from "./display.ts";

/** Displays something below the running cell. */
export async function show(shown: Shown): Promise<void> {
  await notebookBoard()("shown", shown);
  await new Promise((resolve) => setTimeout(resolve, ARRIVAL_MS));
}

/** Deno's kernel may finish a cell before its last output is sent, and drops later output. */
const ARRIVAL_MS = 100;

/** A display with its own names, separate from other displays. */
export function notebookBoard(): Board {
  const broadcast = kernel();
  const displayed = new Set<string>();
  const number = ++displays;
  return async (name, shown) => {
    if (!broadcast) return console.log(String(shown));
    const message = displayed.has(name) ? "update_display_data" : "display_data";
    displayed.add(name);
    const transient = { display_id: `sqlenv-${number}-${name}` };
    await broadcast(message, { ...(await asOutput(shown.bundle)), transient });
  };
}

let displays = 0;

/** Converts SVG to PNG: viewers of saved notebooks strip SVG styles or show no SVG at all. */
async function asOutput({ "image/svg+xml": svg, ...data }: Bundle): Promise<object> {
  if (svg === undefined) return { data, metadata: {} };
  const png = Buffer.from(await svgToPng(svg)).toString("base64");
  const width = Number(/ width="(\d+)"/.exec(svg)?.[1] ?? 900); // the PNG has twice the resolution
  return { data: { ...data, "image/png": png }, metadata: { "image/png": { width } } };
}

type Broadcast = (message: string, content: object) => Promise<void>;

function kernel(): Broadcast | undefined {
  const { Deno } = globalThis as { Deno?: { readonly jupyter?: { readonly broadcast: Broadcast } } };
  try {
    return Deno?.jupyter?.broadcast;
  } catch {
    return undefined; // the getter throws outside a kernel
  }
}
