// Questions: records, files, filters, checks. Loaders from disk and network are in sqlenv/gym/data/node.
export { answerTypeOf, formatAnswer, formatCell, MAX_ANSWER_LENGTH } from "./answer.ts";
export { checkDataSet, type DataSetCheck, SEEN_ROWS } from "./check.ts";
export {
  type DataSet,
  LAYOUTS,
  type Layout,
  REJECTION_REASONS,
  type Rejection,
  type RejectionReason,
} from "./dataset.ts";
export { difficultyOf, type Outline, outline, tablesInvolved } from "./difficulty.ts";
export { filterQuestions, holdOut, type QuestionFilter, splitByDatabase, splitByQuery } from "./filter.ts";
export { type AssembleOptions, assemble, type QuestionDraft } from "./formats/build-questions.ts";
export {
  type ParseOptions,
  parseBird,
  parseQuestions,
  parseSpider,
  type QuestionFile,
} from "./formats/parse-questions.ts";
export { checkGold, type GoldCheck, type GoldFields, MAX_GOLD_BYTES, MAX_GOLD_ROWS } from "./gold.ts";
export { evalIdsSha256, idsSha256 } from "./ids.ts";
export { DATA_SET_NAMES } from "./names.ts";
export {
  ANSWER_TYPES,
  type AnswerType,
  DIFFICULTIES,
  type Difficulty,
  type QuestionRecord,
  questionSchema,
  SPLITS,
  type Split,
} from "./question.ts";
