// Training under Node: runs as folders, and the starter made on the spot.
export * from "./index.ts";
export * from "./recipe.node.ts";
export * from "./starter.node.ts";
export { RunFolder } from "./store.node.ts";
