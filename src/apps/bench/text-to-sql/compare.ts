// Compares two benchmark results question by question. Refuses results whose settings differ, and names the difference.
import { z } from "zod";
import { UsageError } from "../../../errors.ts";
import { comparePaired, type PairedComparison } from "../../../gym/evaluation/index.ts";
import { outcomesSchema as anyOutcomesSchema } from "../../../rl/run/records.ts";
import { MEASURES, type Measure } from "./outcomes.ts";
import { BENCH_FORMAT, type BenchResult } from "./result.ts";

/** Settings that may differ on request. */
export const DIFFERENCES = ["data", "prompt", "rules", "schema", "decoding", "twins"] as const;

export type Difference = (typeof DIFFERENCES)[number];

const verdict = z.boolean().nullable();

/** The part of a result that a comparison reads. */
const comparableSchema = z.object({
  format: z.literal(BENCH_FORMAT),
  model: z.object({ player: z.string(), name: z.string() }),
  data: z.object({ name: z.string(), ids_sha256: z.string(), content_sha256: z.string() }),
  protocol: z.object({
    schema: z.string(),
    rules: z.string().nullable(),
    prompt: z.string().nullable(),
    step_budget: z.number().nullable(),
    votes: z.number(),
    temperature: z.number(),
    max_tokens: z.number(),
    twins: z.string().nullable(),
  }),
  errors: z.number().int().min(0),
  questions: z
    .array(
      z.object({
        id: z.string(),
        database: z.string(),
        answer: verdict,
        spider: verdict,
        bird: verdict,
        twins: verdict,
      }),
    )
    .min(1),
});

export type Comparable = z.infer<typeof comparableSchema>;

/** One side of a comparison. */
export interface Compared extends Pick<BenchResult["model"], "player" | "name"> {
  readonly questions: number;
  /** Number of questions that failed and count as wrong. */
  readonly errors: number;
}

export interface BenchComparison {
  readonly format: "sqlenv-bench-comparison-1";
  readonly a: Compared;
  readonly b: Compared;
  /** Allowed settings in which the results actually differ. */
  readonly differing: readonly Difference[];
  readonly seed: number;
  /** Measures that both results have. */
  readonly measures: Readonly<Partial<Record<Measure, PairedComparison>>>;
}

/** A training's outcomes.json with what a comparison needs: the hash of the questions and a stage. */
const outcomesSchema = anyOutcomesSchema
  .unwrap()
  .extend({ ids_sha256: z.string(), stages: z.array(z.string()).min(1) });

/** Converts a training's outcomes at its last stage to a result. */
function comparableOf(outcomes: z.infer<typeof outcomesSchema>): Comparable {
  const { model_name: name, data, prompt, rules, ids_sha256, step_budget, max_new_tokens, stages, bits } = outcomes;
  const bitOf = (rule: (typeof bits)[number], bit: number | null) =>
    bit === null || !bits.includes(rule) ? null : ((bit >> bits.indexOf(rule)) & 1) === 1;
  return {
    format: BENCH_FORMAT,
    model: { player: "model", name: `${name} (${stages.at(-1)})` },
    data: { name: data, ids_sha256, content_sha256: ids_sha256 }, // its content hash is not recorded
    protocol: {
      schema: "unknown",
      rules,
      prompt,
      step_budget,
      votes: 1,
      temperature: 0,
      max_tokens: max_new_tokens,
      twins: null,
    },
    errors: 0,
    questions: Object.entries(outcomes.questions).flatMap(([database, asked]) =>
      Object.entries(asked).map(([id, byStage]) => {
        const bit = byStage.at(-1) ?? null;
        const verdicts = { answer: bitOf("answer", bit), spider: bitOf("spider", bit), bird: bitOf("bird", bit) };
        return { id, database, ...verdicts, twins: null };
      }),
    ),
  };
}

/** Reads a result or a training's outcomes.json; throws a UsageError that names the file. */
export function readResult(json: string, file: string): Comparable {
  const remedy = "give files that `sqlenv bench … --out` wrote, or outcomes.json of trainings";
  const refuse = (what: string, cause?: unknown) => new UsageError({ what, value: file, remedy, cause });
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw refuse("the file is not JSON", cause);
  }
  const wrong = (format: string, { path }: { readonly path: readonly PropertyKey[] }) =>
    refuse(`the file is not a result of format ${format} (${path.join(".") || "not an object"})`);
  const outcomes = outcomesSchema.safeParse(value);
  if (outcomes.success) return comparableOf(outcomes.data);
  if (!outcomes.error.issues.some(({ path }) => path.length === 0 || path[0] === "format"))
    throw wrong(outcomesSchema.shape.format.value, outcomes.error.issues[0]!);
  const parsed = comparableSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw wrong(BENCH_FORMAT, parsed.error.issues[0]!);
}

/** Compares results on the same questions whose settings differ only as `allowed` permits. */
export function compareResults(
  a: Comparable,
  b: Comparable,
  { allowed = [], seed = 7 }: { readonly allowed?: readonly Difference[]; readonly seed?: number } = {},
): BenchComparison {
  if (a.data.ids_sha256 !== b.data.ids_sha256) {
    const counts = `${a.questions.length} and ${b.questions.length}`;
    const remedy = "run both on the same data set, with the same filters";
    throw new UsageError({ what: "the results are about different questions", value: counts, remedy });
  }
  const differing = differencesOf(a, b);
  const refused = differing.find(({ name }) => !isAllowed(name, allowed));
  if (refused) {
    const { name, what, values } = refused;
    const remedy = `add --differing ${name} where that is what you compare`;
    throw new UsageError({ what: `the results differ in ${what}`, value: values.join(" and "), remedy });
  }
  const byId = new Map(b.questions.map((question) => [question.id, question]));
  const measures: Partial<Record<Measure, PairedComparison>> = {};
  for (const measure of MEASURES) {
    const pairs = a.questions.flatMap(({ id, database, [measure]: mine }) => {
      const other = byId.get(id)?.[measure] ?? null;
      return mine === null || other === null ? [] : [{ database, a: mine, b: other }];
    });
    if (pairs.length > 0) measures[measure] = comparePaired(pairs, seed);
  }
  return {
    format: "sqlenv-bench-comparison-1",
    a: comparedOf(a),
    b: comparedOf(b),
    differing: [...new Set(differing.map(({ name }) => name))],
    seed,
    measures,
  };
}

function comparedOf({ model, questions, errors }: Comparable): Compared {
  return { ...model, questions: questions.length, errors };
}

/** Allowing another schema setting also allows another prompt and other rules. */
function isAllowed(name: Difference, allowed: readonly Difference[]): boolean {
  return allowed.includes(name) || (allowed.includes("schema") && (name === "prompt" || name === "rules"));
}

interface Differing {
  readonly name: Difference;
  readonly what: string;
  readonly values: readonly [string, string];
}

function differencesOf(a: Comparable, b: Comparable): Differing[] {
  const parts: readonly [Difference, string, (result: Comparable) => string | number | null][] = [
    [
      "data",
      "questions or gold queries of the same ids",
      ({ data }) => `${data.name} ${data.content_sha256.slice(0, 8)}`,
    ],
    ["schema", "how the schema is told", ({ protocol }) => protocol.schema],
    ["prompt", "the prompt", ({ protocol }) => protocol.prompt],
    ["rules", "the environment's rules", ({ protocol }) => protocol.rules],
    ["rules", "the step budget", ({ protocol }) => protocol.step_budget],
    ["decoding", "the number of votes", ({ protocol }) => protocol.votes],
    ["decoding", "the temperature", ({ protocol }) => protocol.temperature],
    ["decoding", "the tokens a turn may have", ({ protocol }) => protocol.max_tokens],
    ["twins", "the twins", ({ protocol }) => protocol.twins],
  ];
  return parts.flatMap(([name, what, of]) => {
    // Data sets may have different names if their content is the same.
    const same = name === "data" ? a.data.content_sha256 === b.data.content_sha256 : of(a) === of(b);
    return same ? [] : [{ name, what, values: [String(of(a)), String(of(b))] }];
  });
}
