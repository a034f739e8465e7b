// Counts and rates in words.

/** Such as "1 token" and "25 tokens". */
export function count(value: number, noun: string): string {
  return `${value.toLocaleString("en-US")} ${noun}${value === 1 ? "" : "s"}`;
}

/** Such as "1,240 tokens/s". */
export function tokensPerSecond(tokens: number, seconds: number): string {
  return `${Math.round(tokens / Math.max(1e-3, seconds)).toLocaleString("en-US")} tokens/s`;
}
