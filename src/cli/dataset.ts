// Data sets by name, for the commands.
export * from "../worlds/dataset.node.ts";
