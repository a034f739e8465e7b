// Reports on disk: a run's folder read and its pages written, SVG to PNG.
export * from "./index.ts";
export * from "./png.node.ts";
export * from "./run-folder.node.ts";
