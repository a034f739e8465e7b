// Formats numbers and text for pages. Text from databases and models is untrusted: all of it passes one of the escapes.
import { oneLine } from "../../gym/one-line.ts";

/** Escapes text for HTML and SVG, in elements and quoted attributes. */
export function escapeHtml(text: string): string {
  return visible(text).replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Escapes text for a line of Markdown, including headings and table cells. */
export function escapeMarkdown(text: string): string {
  return oneLine(visible(text), " ⏎ ")
    .replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`)
    .replace(/[\\`*_[\]|~$]|(?<!&)#/g, "\\$&");
}

/** Text as a Markdown code span, also in a table cell. */
export function codeSpan(text: string): string {
  const line = oneLine(visible(text), " ⏎ ");
  if (line.trim() === "") return "";
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  const space = line.startsWith("`") || line.endsWith("`") ? " " : "";
  // A bar ends the cell even inside a span, and an escaping backslash would be shown outside a table: use a similar character.
  return `${fence}${space}${line.replaceAll("|", "¦")}${space}${fence}`;
}

/** Replaces control characters and lone surrogates with U+FFFD; line breaks and tabs stay. */
export function visible(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]/g, "\ufffd")
    .replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
}

/** At most `max` characters, with an ellipsis if truncated. */
export function cut(text: string, max: number): string {
  const characters = [...text];
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join("")}…`;
}

/** 0.1234 as "12.3 %". */
export function percent(rate: number | null | undefined): string {
  return isNumber(rate) ? `${(100 * rate).toFixed(1)} %` : "–";
}

/** An interval of rates: "3.1 – 15.2 %". */
export function percentRange(interval: readonly [number, number] | null | undefined): string {
  return interval ? `${(100 * interval[0]).toFixed(1)} – ${(100 * interval[1]).toFixed(1)} %` : "–";
}

/** A number with about three significant digits; 12345 as 12,345. */
export function shortNumber(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e6) return `${trim((value / 1e6).toFixed(1))}M`;
  if (size >= 999.5) return sign(value) + String(Math.round(size)).replace(/\B(?=(\d{3})+$)/g, ",");
  if (size < 1e-3) return trim(value.toExponential(1)).replace("-", "−").replace("e-", "e−");
  return sign(value) + trim(size.toPrecision(3));
}

/** A number with at most two decimals. */
export function twoDecimals(value: number): string {
  const text = trim(Math.abs(value).toFixed(2));
  return text === "0" ? text : sign(value) + text;
}

function sign(value: number): string {
  return value < 0 ? "−" : "";
}

function trim(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+(?=e|$)/, "") : text;
}

/** 3725 seconds as "1 h 2 min". */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** "1 step", "2 steps", "12,345 steps". */
export function count(value: number, noun: string): string {
  return `${shortCount(value)} ${noun}${value === 1 ? "" : "s"}`;
}

function shortCount(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Whether a value is a finite number. */
export function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

/** A setting as text: lists with commas, null as "none". */
export function settingText(value: unknown): string {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map(settingText).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A p-value: "< 0.001", "0.020". */
export function pValue(p: number): string {
  return p < 0.001 ? "< 0.001" : p.toFixed(3);
}
