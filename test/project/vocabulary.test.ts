// Retired words, and what to write instead, in names, comments, tests and documents (CONTRIBUTING.md has a glossary).
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

interface Rule {
  readonly retired: RegExp;
  readonly instead: string;
  /** Phrases in which the word has its ordinary sense, or a name that users already have. */
  readonly allowed?: RegExp;
  /** Paths that the rule is about, and those that it is not. */
  readonly only?: RegExp;
  readonly except?: RegExp;
}

/** The word alone or as part of a camelCase or snake_case name, with a plural. */
function word(name: string): RegExp {
  const capital = name[0]!.toUpperCase() + name.slice(1);
  return new RegExp(`(?:(?<![A-Za-z])${name}|${capital}|(?<![A-Z])${name.toUpperCase()})(?:s|S)?(?![a-z])`);
}

/** What generated databases are about: a word there is a thing, such as a team, a shelf or a floor. */
const WORLDS = /^src\/gym\/worlds\/|^src\/gym\/players\/prompts\/shots|^test\/reference\//;

const RULES: readonly Rule[] = [
  { retired: /\b[wW]ays? back\b|[wW]ayBack/, instead: "backward" },
  {
    retired: word("card"),
    instead: "GPU",
    allowed: /model.?cards?|report card|\bcards?\??: /gi,
    // Parts of pages, and a saved model's card.
    except:
      /\.(css|html)$|\/web\/|^src\/apps\/reports\/|^src\/gym\/worlds\/|^src\/lm\/(engine\/thread|model\/formats)\//,
  },
  { retired: /\b(RunPlace|moveRun)\b/, instead: "BlockAddress, moveBlock" },
  { retired: word("manner"), instead: "decoding (greedy, sampled)", except: WORLDS },
  {
    retired: /\b(playedBy|playedAtRandom)\b|(?<![-a-z])standings?\b|Standing/,
    instead: "evaluateModel, randomBaseline, evaluation",
    except: WORLDS,
    allowed: /`standing`|\bstanding: ("evaluation"|evaluation,)/g, // a key of earlier versions' files
  },
  { retired: /\b(Reach|QuestionMarks|StageMarks)\b/, instead: "PassAtK, JudgedEpisode, JudgedStage" },
  { retired: /\b[tT]okenGroup/, instead: "TokenSequence", allowed: /type TokenGroup = TokenSequence/g },
  {
    retired: /\b[lL]essons?\b|\bLesson/,
    instead: "SFT stage, example",
    except: WORLDS,
    allowed: /`?lessons(`|:|, )|stages: lessons/g,
  },
  {
    retired: /[wW]arm(ed)?[-_ ]?[uU]p/,
    instead: 'SFT (before RL); "warmup" only for the learning rate and for timing',
    allowed:
      /(lr|learning.rate|LR)'?s? warm-?up|warmup[_-]?steps|warmup_ratio|warm-?up of the learning rate|`(sqlenv )?warmup`|sft.warmup|"warmup"|random\("warm-up"|warmup:|(after|for|as|is|linear|the|\/\/) warmup|warmup steps/gi,
  },
  { retired: /\b[iI]mitat(e|es|ed|ing|ion)\b/, instead: "SFT, demonstrations", allowed: /imitation[-_][a-z_-]+/g },
  { retired: /\b[pP]ut(s|ting)? away\b|\btaken up\b|\btakeUp\b/, instead: "checkpoint, resume" },
  { retired: /\b[sS]o (many|much)\b/, instead: "n, this many", allowed: /so (many|much) (that|as)/g },
  { retired: /\b(go|goes|went|gone) on\b/, instead: "continue", allowed: /go(es)? on (the|a|top|to the)\b/g },
  {
    retired: /\b[bB]ehind\b/,
    instead: "after, under, with",
    except: WORLDS,
    allowed: /[bB]ehind (an?|the|one|any|nginx|some)\b|(left|leaves?|falls?) (.+ )?behind/g,
  },
  { retired: /\blies\b|\blie (in|at|on|beside|next|between|apart)\b/, instead: "is" },
  {
    retired:
      /\b[sS]tands? (at|in|on|beside|before|behind|apart|there|here|above|below|next|with|under)\b|\bas it stands\b/,
    instead: "is",
    allowed: /stands? in for/g,
  },
  {
    retired:
      /\b(a|one) (line|row|object|token|file|action) an? (step|line|file|reply|token|row|logged|evaluation|turn)\b/,
    instead: "one … per …",
    allowed: /one row a line(, cells|")/g,
  },
  {
    retired: /\bclothes\b|\b[mM]utants?\b/,
    instead: "answer formats, mutated queries",
    except: /^src\/gym\/worlds\/|^src\/apps\/(bench\/verifier\/verifier|cli\/commands\/bench)\.ts/, // a key of --json
  },
  { retired: word("shelf"), instead: "pool", except: WORLDS, allowed: /DatabaseShelf|ShelfOptions/g },
  { retired: /\b[gG]lass\b/, instead: "sandbox", except: WORLDS },
  { retired: /\b[lL]ook(s|ed|ing) at\b(?! random)/, instead: "read, check, inference (no gradient)" },
  { retired: /\bunheard\b/, instead: "ignored" },
  { retired: /\b[rR]ecordings?\b/, instead: "CUDA graph, captured graph", only: /^src\/lm\/|^docs\/(gpu|experiments)/ },
  { retired: /\b[mM]ain job\b/, instead: "the default training" },
  { retired: /\b(told|tell|tells|telling) (them )?apart\b/, instead: "significant, distinguish" },
  {
    retired: /(?<!Math\.)(?<![A-Za-z])floors?\b(?!\()/,
    instead: "random baseline, minimum",
    allowed: /`floor`/g,
    except: /^src\/gym\/(worlds|sql)\/|^test\/reference\//, // SQL has a function and a modifier of that name
  },
  { retired: /\b(fmaOnto|saveOne)\b/, instead: "the Intel mnemonics" },
  { retired: /\b[tT]eam\b|Team/, instead: "thread pool, workers", except: WORLDS, only: /^(src|scripts|docs)/ },
];

const FOLDERS = [
  "src",
  "test",
  "scripts",
  "examples",
  "bench",
  "integrations",
  "docs",
  "notebooks",
  "models",
  "deploy",
  ".ci",
  ".github",
];
const FILES = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "SECURITY.md",
  "Dockerfile",
  "compose.yaml",
  "openenv.yaml",
];
const TEXT = /\.(ts|mjs|py|md|ya?ml|ipynb|css|html|cpp|h|conf)$|^\.ci\/run$/;
/** This file, the list of what was renamed, and the aliases of what was. */
const OWN =
  /^test\/project\/vocabulary\.test\.ts$|^CHANGELOG\.md$|^src\/rl\/(deprecated|engine-subpath|config\/renamed)\.ts$/;

const paths = [
  ...FILES,
  ...FOLDERS.filter((folder) => existsSync(resolve(root, folder))).flatMap((folder) =>
    readdirSync(resolve(root, folder), { recursive: true, encoding: "utf8" }).map((file) => `${folder}/${file}`),
  ),
].filter(
  (path) => (TEXT.test(path) || FILES.includes(path)) && !OWN.test(path) && !/node_modules|__pycache__/.test(path),
);

/** A notebook's sources without its outputs; other files as they are. */
function linesOf(path: string): readonly string[] {
  const text = readFileSync(resolve(root, path), "utf8");
  if (!path.endsWith(".ipynb")) return text.split("\n");
  const { cells } = JSON.parse(text) as { cells: { source: string[] | string }[] };
  return cells.flatMap(({ source }) => (typeof source === "string" ? source.split("\n") : source));
}

/** Lines that use a retired word, with what to write instead. */
function findRetired(path: string, lines: readonly string[]): string[] {
  const rules = RULES.filter(({ only, except }) => (only?.test(path) ?? true) && !except?.test(path));
  return rules.flatMap(({ retired, instead, allowed }) =>
    lines.flatMap((line, i) => {
      if (!retired.test(line)) return [];
      const found = retired.exec(allowed ? line.replace(allowed, "") : line);
      return found ? [`${path}:${i + 1}: "${found[0]}": write ${instead}`] : [];
    }),
  );
}

test("retired words are found, also inside names, and ordinary uses are not", () => {
  const found = (line: string, path = "src/x.ts") => findRetired(path, [line]);
  expect(found("const cardMemory = 1; // of the card")).toEqual(['src/x.ts:1: "card": write GPU']);
  expect(found("the model card")).toEqual([]);
  expect(found("Math.floor(x); const step = lr.warmup_steps;")).toEqual([]);
  expect(found("const floor = 3;")).toHaveLength(1);
  expect(found('["Glass", "shelf"]', "src/gym/worlds/lexicon/nouns.ts")).toEqual([]);
});

test("no retired word is used", () => {
  expect(paths.length).toBeGreaterThan(500);
  expect(paths.flatMap((path) => findRetired(path, linesOf(path))).join("\n")).toBe("");
});
