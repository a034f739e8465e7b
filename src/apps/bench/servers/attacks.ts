// The worst messages known: statements that are slow, large or slow to render, and messages that are expensive to
// parse. Each of them once stalled a thread or filled the memory.

const rows = (count: number) => `WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT ${count})`;
const columns = Array.from({ length: 400 }, () => "a").join(",");

/** SQL statements for QUERY actions. */
export const HEAVY_STATEMENTS: readonly string[] = [
  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n",
  `WITH t(a) AS (SELECT printf('%16000s', '')) SELECT ${columns} FROM t`,
  `WITH t(a) AS (SELECT zeroblob(16000)) SELECT ${columns} FROM t`,
  `${rows(10_000_000)} SELECT max(length(upper(printf('%16000d', n)))) FROM r`,
  `${rows(10_000_000)} SELECT sum(length(replace(printf('%16000d', n), ' ', 'x'))) FROM r`,
  `${rows(800_000)} SELECT count(*) FROM r WHERE strftime('%Y', 2450000 + n) > '2000'`,
  `${rows(1_000_000)} SELECT count(*) FROM r WHERE printf('%8000d', n) LIKE '%1%2%3%4%5%6%7%8%'`,
  `${rows(3_000)} SELECT count(*) FROM r a, r b, r c WHERE a.n + b.n = c.n`,
  `${rows(200_000)} SELECT n, row_number() OVER (ORDER BY n * 7919 % 100003), printf('%1000d', n) FROM r ORDER BY 3 DESC`,
];

/** Complete messages for /ws. */
export const HEAVY_MESSAGES: readonly string[] = [
  ...HEAVY_STATEMENTS.map((argument) => stepOf({ action_type: "QUERY", argument })),
  stepOf({ text: "*".repeat(20_000) }),
  stepOf({ text: `${"- ".repeat(9_000)}x` }),
  stepOf({ action_type: "ANSWER", argument: "'a,".repeat(6_000) }),
  stepOf({ action_type: "QUERY", argument: "(".repeat(20_000) }),
  stepOf(Object.fromEntries(Array.from({ length: 8_000 }, (_, i) => [`k${i}`, i]))),
  `{"type":"step","data":${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}}`,
  `{"type":"step","data":{"a":${"[".repeat(50_000)}${"]".repeat(50_000)}}}`,
];

function stepOf(data: object): string {
  return JSON.stringify({ type: "step", data });
}
