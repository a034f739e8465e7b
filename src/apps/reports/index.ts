// A run for people: pictures, pages and Markdown, as pure functions of its records.
export * from "./charts.ts";
export * from "./comparison.ts";
export * from "./habits.ts";
export * from "./learning-curve.ts";
export * from "./live-plots.ts";
export * from "./model-card.ts";
export * from "./run-page.ts";
export * from "./stages.ts";
export * from "./standing.ts";
export * from "./telling.ts";
