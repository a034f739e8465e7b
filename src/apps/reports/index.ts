// Reports on a run: pictures, pages and Markdown, as pure functions of its records.

export * from "./action-stats.ts";
export * from "./comparison.ts";
export * from "./evaluation-summary.ts";
export * from "./example-question.ts";
export * from "./learning-curve.ts";
export * from "./live-plots.ts";
export * from "./metric-charts.ts";
export * from "./model-card.ts";
export * from "./run-page.ts";
export * from "./stages.ts";
