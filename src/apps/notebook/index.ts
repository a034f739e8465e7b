// For notebooks: records as something a cell can show, and a training that changes in place.
export * from "./live.ts";
export * from "./shown.ts";
export * from "./views.ts";
