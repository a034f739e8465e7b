// Training under Node: runs as folders, and models made by a recipe.
export * from "./index.ts";
export * from "./load.node.ts";
export { RunFolder } from "./run/folder.node.ts";
export * from "./sft/recipe.node.ts";
