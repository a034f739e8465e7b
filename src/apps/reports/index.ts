// Reports on a run: pictures, pages and Markdown, as pure functions of its records.

export {
  type ActionStats,
  ActionStatsCounter,
  BEHAVIOURS,
  behaviourOf,
  type CountedEpisode,
  countActions,
  type EpisodeBehaviour,
} from "./action-stats.ts";
export { type BehaviourChartOptions, behaviourChart } from "./behaviour-chart.ts";
export {
  type ComparisonOptions,
  comparisonHtml,
  comparisonMarkdown,
  comparisonSection,
  questionMarkdown,
} from "./comparison.ts";
export {
  behaviourRows,
  behaviourTitle,
  type EvaluationRow,
  evaluatedRows,
  evaluationRows,
  headline,
  isScored,
  passAtKText,
  type TrainingEvaluations,
  verdictOf,
  verdictText,
  withInterval,
} from "./evaluation-summary.ts";
export { exampleQuestion } from "./example-question.ts";
export { type LearningCurveOptions, learningCurve, pointsOf } from "./learning-curve.ts";
export { type LivePlots, livePlots } from "./live-plots.ts";
export { drawSinglePanel, trainingCharts } from "./metric-charts.ts";
export {
  type BlogOptions,
  behaviourTable,
  blogMarkdown,
  evaluationTable,
  type ModelCardOptions,
  modelCard,
} from "./model-card.ts";
export { type RunRecords, runPage } from "./run-page.ts";
export {
  accuracyNote,
  accuracyTable,
  PAIRED_NOTE,
  pairedNote,
  pairedTable,
  recipeLines,
  type StageTable,
  selfTaughtText,
} from "./stages.ts";
