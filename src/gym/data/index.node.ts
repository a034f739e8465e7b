// Loads question files, Spider, BIRD, archives and downloads; these need Node for disk and network access.

export {
  type Checksum,
  type DownloadOptions,
  type DownloadProgress,
  digestOf,
  download,
  hashFile,
  MAX_DOWNLOAD_BYTES,
} from "../../io/download.node.ts";
export { MAX_ENTRIES, MAX_UNPACKED_BYTES, UnpackBudget } from "./archives/archive.ts";
export { type UnpackOptions, unpack } from "./archives/unpack.node.ts";

export { type ExportedDataSet, exportDataSet } from "./formats/export.node.ts";
export { type ImportedDataSet, type ImportOptions, importDataSet, nameOf } from "./formats/import.node.ts";
export { detectLayout, type FoundLayout, findLayout, layoutOf } from "./formats/layout.node.ts";
export { type LoadOptions, loadQuestions } from "./formats/load.node.ts";
export {
  dataSetsFolder,
  findDataSet,
  importedDataSets,
  type OpenDataSetOptions,
  openDataSet,
} from "./formats/open.node.ts";
export { type BirdOptions, loadBird, loadSpider, withQuestionsFrom } from "./formats/spider.node.ts";
export { SPIDER10_DATABASES, spider10 } from "./formats/spider10.node.ts";
