// English grammar for generated questions: articles, plurals, verb endings, lists.

/** Puts "a" or "an" before a noun phrase. */
export function an(phrase: string): string {
  const vowelSound =
    /^(?:[aeio]|u(?!ni|se|su|ti|ro|til)|hour|honest|heir|8|11\b|18\b)/i.test(phrase) &&
    !/^(?:eu|one\b|once\b)/i.test(phrase);
  return `${vowelSound ? "an" : "a"} ${phrase}`;
}

const IRREGULAR: Readonly<Record<string, string>> = {
  person: "people",
  man: "men",
  woman: "women",
  child: "children",
  foot: "feet",
  aircraft: "aircraft",
  species: "species",
  series: "series",
  half: "halves",
  shelf: "shelves",
};

/** The plural of a noun phrase: changes its last word, or the one before "of", "per" or "in". */
export function plural(phrase: string): string {
  const [, head, tail] = /^(.*?)((?: (?:of|per|in|at|on) .*)?)$/.exec(phrase)!;
  const [, before, word] = /^(.*?)([^ ]*)$/.exec(head!)!;
  return `${before}${pluralWord(word!)}${tail}`;
}

function pluralWord(word: string): string {
  const irregular = Object.hasOwn(IRREGULAR, word) ? IRREGULAR[word] : undefined;
  if (irregular) return irregular;
  if (/[^aeiou]y$/.test(word)) return `${word.slice(0, -1)}ies`;
  if (/(?:s|x|z|ch|sh)$/.test(word)) return `${word}es`;
  return `${word}s`;
}

/** The third person singular of a verb phrase; changes only its first word. */
export function third(verb: string): string {
  const [first = "", ...rest] = verb.split(" ");
  return [thirdWord(first), ...rest].join(" ");
}

function thirdWord(verb: string): string {
  if (verb === "have") return "has";
  if (verb === "are") return "is";
  if (/[^aeiou]y$/.test(verb)) return `${verb.slice(0, -1)}ies`;
  return /(?:s|x|z|ch|sh|o)$/.test(verb) ? `${verb}es` : `${verb}s`;
}

/** Forms "Ana's", "Marcus's". */
export function possessive(name: string): string {
  return `${name}'s`;
}

/** Joins words as "a, b and c". */
export function listed(words: readonly string[], last = "and"): string {
  return words.length < 2 ? (words[0] ?? "") : `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}`;
}

/** Capitalizes the first letter and removes duplicate or stray spaces and marks. */
export function sentence(text: string): string {
  const tidy = text
    .replace(/\s+/g, " ")
    .replace(/ ([?.,])/g, "$1")
    .trim();
  return tidy.charAt(0).toUpperCase() + tidy.slice(1);
}

/** Replaces `{name}` in a template by `parts.name`. */
export function fill(template: string, parts: Readonly<Record<string, string | number>>): string {
  return template.replace(/\{(\w+)\}/g, (whole, key: string) => String(parts[key] ?? whole));
}
