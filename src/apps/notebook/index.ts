// For notebooks: records as displayable views, and a live view of a training.

export { type Board, type Bundle, Shown } from "./display.ts";
export { TrainingBoard } from "./training-board.ts";
export {
  behaviourView,
  comparisonView,
  curveView,
  type EpisodeViewOptions,
  episodesView,
  episodeView,
  evaluationView,
  failuresView,
  settingsView,
  transcriptView,
  trendOf,
} from "./views.ts";
