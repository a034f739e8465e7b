// Text of databases and models is hostile: none of it may become markup, in HTML or in Markdown.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { comparison, metrics, RESULT } from "../../../test/helpers/run-records.ts";
import { comparisonHtml, comparisonMarkdown } from "./comparison.ts";
import { escapeHtml, visible } from "./format.ts";
import { blogMarkdown, modelCard } from "./model-card.ts";
import { tableOf } from "./result-table.ts";
import { runPage } from "./run-page.ts";
import { highlightSql } from "./sql-html.ts";

const PAYLOADS = [
  "<script>alert(1)</script>",
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='x",
  "</td></table></details><h1>",
  "<!-- ",
  "]]>",
  "&lt;b&gt; &amp;",
  "a | b | c",
  "`` ` ```",
  "[click](javascript:alert(1))",
  "![x](http://x/y.png)",
  "\\",
  "\n\n# heading\n- item\n|---|\n",
  "\u0000\u001b[31m\ud800\u202e",
  "--> {{x}} $x$",
];
const hostile = fc
  .array(fc.oneof(fc.constantFrom(...PAYLOADS), fc.string({ unit: "binary", maxLength: 20 })), {
    minLength: 1,
    maxLength: 4,
  })
  .map((parts) => parts.join(""));
const texts = fc.record({ question: hostile, sql: hostile, cell: hostile, error: fc.option(hostile) });

// Every tag and attribute the pages may contain; no event handlers, links, sources or scripts among them.
const NAME =
  "(?:html|head|body|main|title|style|h[1-4]|p|span|b|i|code|pre|ol|li|div|table|thead|tbody|tr|th|td|article|header|footer|details|summary|svg|g|path|circle|text|tspan|rect|br)";
const ATTRIBUTE =
  '(?: (?:class|lang|title|role|aria-label|open|style|xmlns|viewBox|d|x|y|dx|cx|cy|r|rx|width|height|text-anchor|font-size|font-weight|fill|fill-opacity|stroke-[a-z]+)(?:="[^"<>]*")?)*';
const TAG = new RegExp(`^<(?:/?${NAME}${ATTRIBUTE}/?|!doctype html|meta [^<>]*)>$`);

function expectOwnMarkupOnly(html: string): void {
  const foreign = (html.match(/<[^>]*>?/g) ?? []).filter((tag) => !TAG.test(tag));
  expect(foreign).toEqual([]);
  expect(html.replace(/<[^>]*>/g, "").replace(/@media[^{]*\(max-width/g, "")).not.toMatch(/<|javascript:[^;]*;"/);
}

function textOf(html: string): string {
  return html.replace(/<[^>]*>/g, "").replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));
}

describe("comparisonHtml", () => {
  test("shows turns, results as tables, rewards and verdicts", () => {
    const html = comparisonHtml(comparison());
    expect(html).toContain("<b>SELECT</b> <b>count</b>(*) <b>FROM</b> lamp");
    expect(html).toContain(
      '<th>count(*)</th><th>name</th></tr></thead><tbody><tr><td class="number">12</td><td>x</td>',
    );
    expect(html).toContain("+0.025: +0.02 it worked, +0.01 new, −0.005 a step");
    expect(html).toContain('<span class="verdict good">right, reward +1.045, 3 steps</span>');
    expect(html.match(/class="verdict bad"/g)).toHaveLength(2);
    expect(html).not.toMatch(/<script|\ssrc=|\shref=/);
  });

  test("escapes all markup in records without losing text", () => {
    fc.assert(
      fc.property(texts, fc.array(hostile, { minLength: 3, maxLength: 3 }), (given, players) => {
        const html = comparisonHtml(comparison(given, players), { title: given.question });
        expectOwnMarkupOnly(html);
        expect(textOf(html)).toContain(visible(given.question));
      }),
      { numRuns: 200 },
    );
  });

  test("no question was played, or an episode failed", () => {
    expect(comparisonHtml({ players: ["random"], questions: [] })).toContain("No question was played");
    const one = comparison();
    const broken = {
      ...one.questions[0]!.episodes[0]!,
      steps: [],
      step_count: 0,
      correctness: null,
      error: "no endpoint",
    };
    const html = comparisonHtml({ ...one, questions: [{ ...one.questions[0]!, episodes: [broken] }] });
    expect(html).toContain("broken after 0 steps: no endpoint");
  });
});

test("the other pages escape markup too", () => {
  fc.assert(
    fc.property(texts, hostile, (given, text) => {
      const warnings = [{ step: 1, code: text, message: text, remedy: text }];
      const result = { ...RESULT, run: text, model_name: text };
      const records = {
        run: text,
        config: { [text]: text, list: [text] },
        warnings,
        result,
        comparison: comparison(given),
      };
      expectOwnMarkupOnly(runPage({ ...records, metrics: [{ step: 1, reward: 1, [`rewards/${text}/mean`]: 0.5 }] }));
      for (const markdown of [
        modelCard({ result, config: records.config }),
        blogMarkdown({ result, comparison: records.comparison }),
      ])
        expectPlainMarkdown(markdown.replace(/^---\n[\s\S]*?\n---\n/, ""));
    }),
    { numRuns: 60 },
  );
  expect(runPage({ run: "r", config: null, metrics: metrics() })).toContain("not finished");
});

/** Markdown without its code, as far as a reader of CommonMark sees it: spans, fences and escapes taken out. */
function withoutCode(markdown: string): string {
  let rest = markdown.replace(/^```[\s\S]*?^```$/gm, "");
  let plain = "";
  while (rest !== "") {
    const run = /^`+/.exec(rest)?.[0];
    const end = run === undefined ? -1 : rest.slice(run.length).search(new RegExp(`(?<!\`)${run}(?!\`)`));
    const taken = run === undefined ? (rest.startsWith("\\") ? 2 : 1) : end < 0 ? run.length : end + 2 * run.length;
    if (run === undefined && taken === 1) plain += rest[0];
    if (run !== undefined && end < 0) plain += run;
    rest = rest.slice(taken);
  }
  return plain;
}

function expectPlainMarkdown(markdown: string): void {
  const plain = withoutCode(markdown)
    .replaceAll("<br>", "")
    .replace("![Reward and success over training steps](learning_curve.png)", "");
  expect(plain).not.toMatch(/[<[\]`]/);
  const widths = markdown
    .split("\n\n")
    .filter((block) => block.includes("\n|") && block.includes("---"))
    .map(
      (block) =>
        new Set(
          block
            .split("\n")
            .filter((line) => line.startsWith("|"))
            .map((line) => line.match(/(?<!\\)(?:\\\\)*\|/g)!.length),
        ).size,
    );
  expect(widths.every((different) => different === 1)).toBe(true);
}

describe("comparisonMarkdown", () => {
  test("has one table per question, one row per turn, one column per player", () => {
    const markdown = comparisonMarkdown(comparison());
    expect(markdown).toContain("## How many lamps are there?");
    expect(markdown).toContain(
      "| turn | random | before | after |\n| --- | --- | --- | --- |\n| 1 | **DESCRIBE** `lamp`<br>",
    );
    expect(markdown).toContain("**QUERY** `SELECT count(*) FROM lamp`<br>`count(*) ¦ name`<br>`12 ¦ x`<br>");
    expect(markdown.trimEnd()).toMatch(/\|\s+\| \*\*✗ wrong, .*\| \*\*✓ right, reward \+1\.045, 3 steps\*\* \|$/);
  });

  test("escapes all markup in records and keeps tables intact", () => {
    fc.assert(
      fc.property(texts, fc.array(hostile, { minLength: 3, maxLength: 3 }), (given, players) => {
        expectPlainMarkdown(comparisonMarkdown(comparison(given, players), { title: given.question }));
      }),
      { numRuns: 200 },
    );
  });
});

describe("parts", () => {
  test("highlighting changes no character", () => {
    fc.assert(fc.property(hostile, (sql) => textOf(highlightSql(sql)) === textOf(escapeHtml(sql))));
    expect(highlightSql("select 'it''s' -- <b>\n, 1.5 from \"a b\"")).toBe(
      '<b>select</b> <span class="s">&#39;it&#39;&#39;s&#39;</span> -- &#60;b&#62;\n, <span class="n">1.5</span> <b>from</b> <span class="q">&#34;a b&#34;</span>',
    );
  });

  test("a result is a table only if its columns are unambiguous", () => {
    expect(tableOf("a | b\n1 | 2\n(20 of 40 rows shown)")).toEqual({
      head: ["a", "b"],
      rows: [["1", "2"]],
      notice: "(20 of 40 rows shown)",
    });
    expect(tableOf("a\n(no rows)")).toEqual({ head: ["a"], rows: [], notice: "(no rows)" });
    expect(tableOf("a | b\n1 | 2 | 3")).toBeNull();
  });
});
