// For notebooks: records as something a cell can show, and a training that changes in place.

export * from "./display.ts";
export * from "./live-training.ts";
export * from "./views.ts";
