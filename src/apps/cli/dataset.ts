// Data sets by name, for the commands.
export * from "../../gym/datasets.node.ts";
