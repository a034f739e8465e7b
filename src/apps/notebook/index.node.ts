// For notebooks under Deno and Node: what they show, where they run, and what their settings name.
export * from "./deno-display.node.ts";
export * from "./index.ts";
export * from "./setup.node.ts";
