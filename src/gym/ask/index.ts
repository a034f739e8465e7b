// Questions without a gold: an answer, the query that gave it, and whether it should be trusted.
export {
  type Agreement,
  type AnswerGroup,
  agreementText,
  MIN_AGREEMENT,
  measureAgreement,
  UNSURE_REASONS,
  type Unsure,
  type UnsureReason,
} from "./agreement.ts";
export { type FoundAnswer, findAnswer, type Support, sameAnswer } from "./answer.ts";
export {
  type AskedAnswer,
  type AskQuestionOptions,
  askQuestion,
  checkQuestion,
  MAX_QUESTION_LENGTH,
} from "./ask.ts";
