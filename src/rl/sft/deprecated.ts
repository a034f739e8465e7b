// Names of before, for programs that import them.
export { sftDatabases as imitatedDatabases, sftQuestions as imitatedQuestions } from "../run/split.ts";
export {
  type SftOptions as WarmupOptions,
  type SftReport as WarmupReport,
  type SftStep as WarmupStep,
  sftLearningRate as learningRate,
  trainSft as warmup,
} from "./sft.ts";
