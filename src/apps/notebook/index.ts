// For notebooks: records as displayable views, and a live view of a training.

export { type Board, type Bundle, Shown } from "./display.ts";
export { showOn } from "./live-training.ts";
export {
  behaviourView,
  comparisonView,
  curveView,
  episodesView,
  evaluationView,
  settingsView,
  transcriptView,
  trendOf,
} from "./views.ts";
