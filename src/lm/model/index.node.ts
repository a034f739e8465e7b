// Everything in sqlenv/lm/model, plus model folders and weight files on disk, which need Node.

export { loadModelFolder, type SaveModelOptions, saveModelFolder } from "./formats/folder.node.ts";
export { findModel, type HubOptions, hubCache } from "./formats/hub.node.ts";
export { openSafetensors } from "./formats/safetensors.node.ts";
export * from "./index.ts";
