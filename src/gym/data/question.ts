// A question about one database, with the gold query whose result is the answer.
import { z } from "zod";

export const DIFFICULTIES = ["easy", "medium", "hard"] as const;
export const ANSWER_TYPES = ["integer", "float", "string", "list", "table"] as const;
export const SPLITS = ["train", "eval"] as const;

/** A record in a question file. */
export const questionSchema = z
  .object({
    question_id: z.string().min(1).describe("unique within the file, such as music_train_007"),
    question_text: z.string().trim().min(1).describe("the question as a person would ask it"),
    database_name: z.string().min(1).describe("the database it is about"),
    gold_sql: z.string().trim().min(1).describe("one SELECT whose result is the answer"),
    gold_answer: z.string().describe("that result as text, in the form the verifier reads"),
    answer_type: z.enum(ANSWER_TYPES),
    difficulty: z.enum(DIFFICULTIES),
    tables_involved: z.array(z.string()),
    split: z.enum(SPLITS),
  })
  .readonly();

export type QuestionRecord = z.infer<typeof questionSchema>;
export type Difficulty = (typeof DIFFICULTIES)[number];
export type AnswerType = (typeof ANSWER_TYPES)[number];
export type Split = (typeof SPLITS)[number];
