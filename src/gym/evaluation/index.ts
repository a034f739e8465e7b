// Evaluation of players: success rates with intervals, comparisons, transcripts.

export * from "../episode.ts";
export * from "./accuracy/episode-accuracy.ts";
export * from "./accuracy/execution.ts";
export * from "./accuracy/twin.ts";
export * from "./accuracy/twins.ts";
export * from "./behaviour.ts";
export * from "./cluster.ts";
export * from "./environments/source.ts";
export * from "./evaluate.ts";
export * from "./paired.ts";
export * from "./summary.ts";
export * from "./transcript.ts";
export * from "./wilson.ts";
