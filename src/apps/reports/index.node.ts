// Reports on disk: reads a run's folder, writes its pages, converts SVG to PNG.
export * from "./index.ts";
export { type PngOptions, svgToPng } from "./png.node.ts";
export {
  RUN_FILES,
  type Run,
  readConfig,
  readEpisodes,
  readRun,
  trainingReport,
  type WrittenReport,
  writeReport,
} from "./run-report.node.ts";
