// Many episodes, counted: success with intervals, transcripts.
export * from "./behaviour.ts";
export * from "./cluster.ts";
export * from "./environment-source.ts";
export * from "./episode.ts";
export * from "./episode-accuracy.ts";
export * from "./evaluate.ts";
export * from "./execution.ts";
export * from "./paired.ts";
export * from "./report.ts";
export * from "./transcript.ts";
export * from "./twin.ts";
export * from "./twins.ts";
export * from "./wilson.ts";
