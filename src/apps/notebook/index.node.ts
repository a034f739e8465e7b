// For notebooks under Deno and Node: views, display, and setup.
export * from "./deno-display.node.ts";
export * from "./index.ts";
export * from "./setup.node.ts";
