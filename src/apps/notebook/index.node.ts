// For notebooks under Deno and Node: views, display, and setup.
export { notebookBoard, show } from "./deno-display.node.ts";
export * from "./index.ts";
export { countOf, machine, PROJECT_ROOT, questionsOf, saveTrainedModel, weightsSha256 } from "./setup.node.ts";
