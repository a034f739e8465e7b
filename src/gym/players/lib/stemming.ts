// Words of questions and of names, brought to one form so that "Release Years" meets release_year.

/** Words in lower case without plural endings; identifiers are cut at underscores and humps. */
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

/** How well a name is named in a text: 0 not at all, 1 every word of it; `at` is the place of its first word. */
export function mention(name: string, words: readonly string[]): { readonly score: number; readonly at: number } {
  const parts = stems(name);
  const places = parts.map((part) => words.indexOf(part)).filter((place) => place >= 0);
  return { score: parts.length === 0 ? 0 : places.length / parts.length, at: Math.min(...places, words.length) };
}

/** Whether a value stands in a text, in any letter case and not inside a word. */
export function occursIn(value: string, text: string): boolean {
  if (!text.toLowerCase().includes(value.toLowerCase())) return false; // most values end here, cheaply
  const escaped = value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])`, "iu").test(text);
}

/** Words that speak of a quantity without naming it, with the words columns have for it. */
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

/** The question's words, with those of the quantities its adjectives speak of: "oldest" adds age, birth, … */
export function withHints(words: readonly string[]): string[] {
  const hinted = words.flatMap((word) => {
    const plain = word.replace(/(?:est|er)$/, "");
    const found = HINTS[word] ?? HINTS[plain] ?? HINTS[`${plain}e`] ?? HINTS[plain.replace(/(.)\1$/, "$1")];
    return found ?? HINTS[plain.replace(/i$/, "y")] ?? [];
  });
  return [...words, ...hinted];
}
