import { describe, expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { comparison, episodeLine, metrics, RESULT, TIMINGS } from "../../../test/helpers/run-records.ts";
import type { TrainingResult } from "../../rl/run/records.ts";
import { countActions } from "./action-stats.ts";
import { evaluationRows, headline } from "./evaluation-summary.ts";
import { trainingCharts } from "./metric-charts.ts";
import { blogMarkdown, modelCard } from "./model-card.ts";
import { runPage } from "./run-page.ts";
import { accuracyTable, pairedTable } from "./stages.ts";

const config = { model_name: "starter", learning_rate: 1e-4, difficulty_filter: ["easy", "medium"], threads: null };

describe("runPage", () => {
  test("shows before and after with intervals, warnings with remedies, and the settings", () => {
    const warning = { code: "no_spread", message: "no group has spread", remedy: "raise num_generations" };
    const warnings = [3, 9].map((step) => ({ ...warning, step }));
    const page = runPage({
      ...{ run: "lamps", config, metrics: metrics(), timings: TIMINGS, warnings, result: RESULT },
      comparison: comparison(),
    });
    expect(page).toContain("10.0 % (5.0 – 15.0 %)</td><td>80.0 % (75.0 – 85.0 %)");
    expect(page.match(/<span class="tag better">better/g)).toHaveLength(4);
    expect(page).toContain(
      'no group has spread</b> <span class="dim">(2 times, steps 3 to 9)</span><br>raise num_generations',
    );
    expect(page).toContain("<td>difficulty_filter</td><td>easy, medium</td>");
    expect(page).toContain("<td>threads</td><td>none</td>");
    expect(page).toContain("How many lamps are there?");
    expect(page).toMatch(/describes the table before querying it<\/td><td>[\d.]+ %<\/td><td>10.0 %<\/td><td>80.0 %/);
    expect(page).toContain("with evaluations and saving");
    expect(page).not.toMatch(/<script|<link|<img|\ssrc=|\shref=|@import|url\(/); // nothing to load, nothing to run
    expect(page).not.toMatch(/NaN|undefined|\[object/);
  });

  test("a run without a result, or without any records, has a page", () => {
    expect(runPage({ run: "lamps", config, metrics: metrics(7) })).toContain("step 7 is the last one logged");
    const empty = runPage({ run: "lamps", config: null, metrics: [] });
    expect(empty).toContain("has not finished a step yet");
    expect(empty).not.toMatch(/NaN|undefined|Infinity|Training metrics/);
  });

  test("a split without questions says so", () => {
    const none = {
      ...RESULT.after.seen.greedy,
      episodes: 0,
      scored: 0,
      success_rate: null,
      success_ci: null,
      mean_steps: null,
    };
    const nowhere = { greedy: none, sampled: none };
    const strip = (evaluation: typeof RESULT.after) => ({ ...evaluation, unseen: nowhere });
    const result = {
      ...RESULT,
      random: strip(RESULT.random),
      before: strip(RESULT.before),
      after: strip(RESULT.after),
    };
    const page = runPage({ run: "lamps", config, metrics: [], result });
    expect(page).not.toMatch(/NaN|null/);
    expect(page).toContain("behaviour on seen databases, greedy");
    expect(headline(result)).toMatch(/^success on seen databases, greedy: 12.0 %/);
    const empty = { ...result, before: { ...result.before, seen: nowhere }, after: { ...result.after, seen: nowhere } };
    expect(headline(empty)).toBe('nothing was evaluated: there are no questions with "split": "eval"');
    const failed = { greedy: { ...none, episodes: 24 }, sampled: none };
    expect(headline({ ...empty, after: { ...empty.after, unseen: failed } })).toMatch(
      /^nothing to compare: no episode of the evaluation after training could be scored; evaluation-after.jsonl has/,
    );
  });
});

test("draws charts for available data, action statistics included", async () => {
  const habits = await countActions([episodeLine(1), episodeLine(1, 0), episodeLine(2)]);
  expect(habits).toMatchObject([
    { step: 1, episodes: 2, DESCRIBE: 1, SAMPLE: 0, QUERY: 1, ANSWER: 1, failed: 0 },
    { step: 2, episodes: 1 },
  ]);
  const titles = (charts: readonly string[]) => charts.map((chart) => /aria-label="([^"]*)"/.exec(chart)![1]);
  expect(titles(trainingCharts(metrics(), TIMINGS, habits))).toEqual([
    "Reward std",
    "Groups with zero std",
    "Entropy",
    "Loss",
    "Gradient norm",
    "Tokens per episode",
    "Truncated episodes",
    "Actions per episode",
    "Seconds per step",
    "Tokens per second",
  ]);
  expect(trainingCharts([])).toEqual([]);
});

describe("evaluation", () => {
  test("says better or worse only if the intervals are disjoint", () => {
    const verdicts = (before: typeof RESULT.before, after: typeof RESULT.after) =>
      new Set(evaluationRows({ ...RESULT, before, after }).map(({ verdict }) => verdict));
    expect(verdicts(RESULT.before, RESULT.after)).toEqual(new Set(["better"]));
    expect(verdicts(RESULT.after, RESULT.before)).toEqual(new Set(["worse"]));
    expect(verdicts(RESULT.random, RESULT.before)).toEqual(new Set(["not significant"]));
    expect(headline({ ...RESULT, after: RESULT.before })).toContain("intervals overlap");
  });
});

describe("stages", () => {
  const score = (rate: number) => ({ right: 100 * rate, rate, ci: [rate - 0.05, rate + 0.05] as const });
  const place = (rate: number) => ({ questions: 100, answer: score(rate), spider: score(rate), bird: score(rate) });
  const accuracy = (rate: number) => ({
    unseen: place(rate),
    seen: { questions: 0, answer: null, spider: null, bird: null },
  });
  const part = (databases: readonly string[]) => ({ databases, questions: 10 * databases.length, ids_sha256: "0" });
  const result: TrainingResult = {
    ...RESULT,
    base: RESULT.random,
    accuracy: { base: accuracy(0.1), before: accuracy(0.3), after: accuracy(0.5) },
    paired: [
      {
        ...{ from: "before", to: "after", place: "unseen", mark: "answer", questions: 100, databases: 5 },
        ...{ a: 0.3, b: 0.5, difference: 0.2, difference_ci: [0.1, 0.3], only_a: 5, only_b: 25 },
        ...{ mcnemar_p: 0.0003, permutation_p: 0.0625, permutations: 32 },
      },
    ],
    sft: { steps: 8, tokens: 9000, transcripts: 20, too_long: 0, first_loss: 2, last_loss: 0.5, seconds: 12 },
    split: {
      ...{ seed: 1, shares: { databases: 0.333, episodes: 0.4 }, overlap: false },
      ...{ sft: part(["a"]), grpo: part(["b", "c"]), eval: part(["d"]) },
    },
  };

  test("a page has each stage's accuracy, the paired tests, SFT and the split", () => {
    const page = runPage({ run: "lamps", config, metrics: metrics(), result });
    expect(page).toContain("<th>untrained</th><th>after SFT</th><th>after GRPO</th>");
    expect(page).toContain(
      "<td>Spider&#39;s rule, unseen</td><td>10.0 (5.0–15.0)</td><td>30.0 (25.0–35.0)</td><td>50.0 (45.0–55.0)</td>",
    );
    expect(page).not.toContain(", seen</td>");
    expect(page).toContain("100 questions on unseen databases; 95 % intervals.");
    expect(page).toContain(
      "<td>GRPO: answers, unseen</td><td>+20.0 (+10.0 to +30.0)</td><td>&#60; 0.001</td><td>0.063</td>",
    );
    expect(page).toContain("SFT: 8 steps, 20 episodes, 9,000 tokens, loss 0.500, 12 s.");
    expect(page).toContain(
      "Split by database, seed 1: SFT 10 questions on 1 database, GRPO 20 questions on 2 databases",
    );
  });

  test("the paired test decides if there is one", () => {
    const overlapping = { ...result, after: result.before };
    const paired = (change: object) => ({ ...overlapping, paired: [{ ...result.paired![0]!, ...change }] });
    const [row] = evaluationRows(paired({ permutation_p: 0.0001 }));
    expect(row).toMatchObject({ split: "unseen", decoding: "greedy", p: 0.0001, verdict: "better" });
    expect(evaluationRows(paired({ permutation_p: 0.0001, difference: -0.2 }))[0]!.verdict).toBe("worse");
    expect(evaluationRows(paired({}))[0]).toMatchObject({ p: 0.0625, verdict: "not significant" });
    expect(evaluationRows(paired({ databases: 1 }))[0]).toMatchObject({ p: 0.0003, verdict: "better" });
    expect(evaluationRows(paired({ permutation_p: 0.0001 }))[1]).toMatchObject({ p: null, decoding: "sampled" });
    expect(headline(paired({ permutation_p: 0.0001 }))).toContain("after, p < 0.001; random");
    expect(modelCard({ result: paired({ permutation_p: 0.0001 }) })).toContain("| better, p < 0.001 |");
    expect(modelCard({ result: overlapping })).toContain("not significant, p = 0.063");
  });

  test("the headline names three stages, and the model card has their table", () => {
    expect(headline(result)).toMatch(
      /: 2\.0 % untrained, 10\.0 % \(.*\) before GRPO, 80\.0 % \(.*\) after, p = 0\.063; random/,
    );
    const card = modelCard({ result });
    expect(card).toContain("with supervised fine-tuning (SFT), then reinforcement learning\n(GRPO)");
    for (const text of [card, blogMarkdown({ result })]) {
      expect(text).toContain("| right, greedy (%) | untrained | after SFT | after GRPO |");
      expect(text).toContain("| GRPO: answers | +20.0 (+10.0 to +30.0) | < 0.001 | 0.063 |");
    }
  });

  test("the tables fit a terminal of 80 columns", () => {
    const share = { right: 64, rate: 0.999, ci: [0.888, 1] as const };
    const full = { questions: 64, answer: share, spider: share, bird: share };
    const self_taught = [{ ...result.sft!, questions: 1, solved: 1, episodes: 1, right: 1, kept: 1 }];
    const wide: TrainingResult = {
      ...{ ...result, self_taught, paired: [{ ...result.paired![0]!, to: "before", mark: "spider" }] },
      accuracy: { base: { unseen: full, seen: full }, before: { unseen: full, seen: full }, after: accuracy(0.5) },
    };
    for (const { head, rows } of [accuracyTable(wide)!, pairedTable(wide, true)!]) {
      const widths = head.map((_, i) => Math.max(...[head, ...rows].map((row) => row[i]!.length)));
      expect(
        widths.reduce((sum, width) => sum + 2 + width),
        rows.join("\n"),
      ).toBeLessThanOrEqual(80);
    }
  });
});

describe("Markdown", () => {
  const frontOf = (card: string) => parseYaml(/^---\n([\s\S]*?)\n---\n/.exec(card)![1]!) as Record<string, unknown>;

  test("a model card has the Hub's front matter, the results, and how to load it", () => {
    const card = modelCard({ result: { ...RESULT, run: "runs/lamps" }, config });
    expect(frontOf(card)).toEqual({
      library_name: "transformers",
      pipeline_tag: "text-generation",
      tags: ["sqlenv", "grpo", "reinforcement-learning", "text-to-sql"],
    });
    expect(card).toContain("\n# lamps\n");
    expect(card).toContain(
      "| unseen databases, greedy | 2.0 % (0.0 – 7.0 %) | 10.0 % (5.0 – 15.0 %) | 80.0 % (75.0 – 85.0 %) | better |",
    );
    expect(card).toContain("| learning\\_rate | 0.0001 |".replace("\\", ""));
    expect(card).toContain("40 steps, 1,280 episodes, 7 min 12 s");
    expect(card).toContain("AutoModelForCausalLM.from_pretrained");
  });

  test("names the base model and the license if known", () => {
    const result = { ...RESULT, model_name: "Qwen/Qwen3-0.6B" };
    expect(frontOf(modelCard({ result, license: "apache-2.0" }))).toMatchObject({
      base_model: "Qwen/Qwen3-0.6B",
      license: "apache-2.0",
    });
    const odd = 'a: "b"\n---\n';
    expect(frontOf(modelCard({ result, base_model: odd }))).toMatchObject({ base_model: odd });
    expect(frontOf(modelCard({ result: { ...result, model_name: "models/own.gguf" } }))).not.toHaveProperty(
      "base_model",
    );
  });

  test("a post has the claim, the picture and an example question", () => {
    const post = blogMarkdown({ result: RESULT, comparison: comparison() });
    expect(post).toContain(
      "Success on unseen databases, greedy: 10.0 % (5.0 – 15.0 %) before, 80.0 % (75.0 – 85.0 %) after; random 2.0 %.",
    );
    expect(post).toContain("](learning_curve.png)");
    expect(post).toContain("### How many lamps are there?");
  });

  test("names of practice worlds are said to be invented, above the example", () => {
    const about = (questions_path: string) => {
      const own = { ...config, questions_path };
      const page = runPage({ run: "lamps", config: own, metrics: [], comparison: comparison() });
      return [page, blogMarkdown({ result: RESULT, comparison: comparison(), config: own })];
    };
    for (const text of about("starter")) expect(text).toContain("Names in these questions are invented on purpose");
    for (const text of about("spider")) expect(text).not.toContain("invented");
  });
});
