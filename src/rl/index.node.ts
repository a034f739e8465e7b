// Training under Node: runs as folders, and models made by a recipe.
export * from "./index.ts";
export { RunFolder } from "./run/folder.node.ts";
export * from "./sft/recipe.node.ts";
