// Stems words of questions and names, so that "Release Years" matches release_year.

/** Splits text into lower-case words without plural endings; identifiers are split at underscores and camel case. */
export function stems(text: string): string[] {
  return text
    .replace(/([a-z\d])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "")
    .map(stem);
}

function stem(word: string): string {
  if (word.length <= 3) return word;
  if (word.endsWith("ies")) return `${word.slice(0, -3)}y`;
  if (/(?:s|x|z|ch|sh)es$/.test(word)) return word.slice(0, -2);
  return word.endsWith("s") && !/(?:ss|us|is)$/.test(word) ? word.slice(0, -1) : word;
}

/** How well a text mentions a name, from 0 (not at all) to 1 (every word); `at` is the position of its first word. */
export function mention(name: string, words: readonly string[]): { readonly score: number; readonly at: number } {
  const parts = stems(name);
  const positions = parts.map((part) => words.indexOf(part)).filter((at) => at >= 0);
  return { score: parts.length === 0 ? 0 : positions.length / parts.length, at: Math.min(...positions, words.length) };
}

/** Whether a value occurs in a text, in any letter case and not inside a word. */
export function occursIn(value: string, text: string): boolean {
  if (!text.toLowerCase().includes(value.toLowerCase())) return false; // a cheap test that rules out most values
  const escaped = value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])`, "iu").test(text);
}

/** Words that imply a quantity, with words that columns use for it. */
const HINTS: Readonly<Record<string, readonly string[]>> = {
  old: ["age", "birth", "year", "founded", "built"],
  young: ["age", "birth"],
  tall: ["height"],
  high: ["height", "elevation"],
  long: ["duration", "length", "minute", "distance"],
  short: ["duration", "length", "height", "distance"],
  heavy: ["weight"],
  light: ["weight"],
  expensive: ["price", "cost", "fee"],
  cheap: ["price", "cost", "fee"],
  big: ["size", "capacity", "population", "area"],
  large: ["size", "capacity", "population", "area"],
  small: ["size", "capacity", "population", "area"],
  new: ["year", "date", "founded", "built"],
  recent: ["date", "year"],
  late: ["date", "year"],
  early: ["date", "year"],
  fast: ["speed", "time"],
  rich: ["revenue", "budget", "salary"],
  paid: ["salary", "wage"],
  earn: ["salary", "wage"],
  cost: ["price", "fee"],
};

/** Adds words for the quantities that the question's adjectives imply: "oldest" adds age, birth, … */
export function withHints(words: readonly string[]): string[] {
  const hinted = words.flatMap((word) => {
    const plain = word.replace(/(?:est|er)$/, "");
    const found = HINTS[word] ?? HINTS[plain] ?? HINTS[`${plain}e`] ?? HINTS[plain.replace(/(.)\1$/, "$1")];
    return found ?? HINTS[plain.replace(/i$/, "y")] ?? [];
  });
  return [...words, ...hinted];
}
