// Generates databases and questions: the bundled data set, and any number of practice worlds from a seed.
export { buildWorld } from "./build.ts";
export {
  BUNDLED_COUNTS,
  BUNDLED_SPECS,
  type BundledOptions,
  bundledDataSet,
  TRAIN_DATABASES,
  UNIVERSAL_NAMES,
  UNSEEN_DATABASES,
  unseenNames,
} from "./bundled.ts";
export {
  type PracticeOptions,
  type PracticeQuestion,
  type PracticeWorld,
  practiceDataSet,
  practiceWorlds,
} from "./practice/practice.ts";
export { type PracticeSetOptions, practiceSet, STARTER_FORMS } from "./practice/practice-set.ts";
export { practiceWorld } from "./practice/spec.ts";
export type {
  CategoryColumn,
  ColumnSpec,
  DateColumn,
  IdColumn,
  LabelColumn,
  NumberColumn,
  RefColumn,
  TableSpec,
  WorldSpec,
} from "./spec.ts";
