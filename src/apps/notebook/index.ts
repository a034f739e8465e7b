// For notebooks: records as displayable views, and a live view of a training.

export * from "./display.ts";
export * from "./live-training.ts";
export * from "./views.ts";
