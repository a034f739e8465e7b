// A model that can sample and learn.
export type {
  AdamParams,
  Datum,
  Engine,
  ForwardBackwardOptions,
  ForwardBackwardOutput,
  LogprobOptions,
  OptimOutput,
  Sample,
  SampleRequest,
} from "./engine.ts";
export {
  cudaLimits,
  estimateMemory,
  type MemoryEstimate,
  type MemoryOptions,
  type MemoryPlace,
} from "./estimate-memory.ts";
export { type CrossEntropySpec, crossEntropy } from "./learning/cross-entropy.ts";
export {
  type BatchTotals,
  batchTotals,
  type LossFunction,
  type LossOutput,
  type LossSpec,
  type LossTable,
  type PartMetrics,
  type TokenEntropies,
  type TokenSequence,
} from "./learning/loss.ts";
export { loadWebModel, type WebModel, type WebModelOptions } from "./load.web.ts";
export { LocalEngine } from "./local-engine.ts";
export type { ClientOptions } from "./remote/client.ts";
export type { RemoteInputs, RemoteLoss, RemoteLossTable, RemoteRequest } from "./remote/losses.ts";
export { RemoteEngine, type RemoteLora, type RemoteOptions } from "./remote/remote-engine.ts";
