// For notebooks under Deno and Node: what they show, where they run, and what their settings name.
export * from "./board.node.ts";
export * from "./index.ts";
export * from "./place.node.ts";
