// Reports on disk: reads a run's folder, writes its pages, converts SVG to PNG.
export * from "./index.ts";
export * from "./png.node.ts";
export * from "./run-report.node.ts";
