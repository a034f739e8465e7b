// Training under Node: runs as folders, and models made by a recipe.
export * from "./index.ts";
export * from "./recipe.node.ts";
export { RunFolder } from "./store.node.ts";
