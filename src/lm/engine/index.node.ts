// The engine under Node: runs in a worker thread, loads models by name, saves to disk.

export { findModel, hubCache } from "../model/formats/hub.node.ts";
export * from "./index.ts";
export { baseFolderOf, type LoadedModel, type LoadModelOptions, loadModelAndTokenizer } from "./load.node.ts";
export type { ModelEngine } from "./model-engine.ts";
export {
  connectRemoteModel,
  type LoadRemoteOptions,
  RemoteModelEngine,
} from "./remote/remote-model.node.ts";
export { startEngine, ThreadEngine, type ThreadEngineOptions } from "./thread/client.node.ts";
