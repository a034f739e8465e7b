// What readers of practice worlds' questions should know.

/** A sentence for runs on practice worlds; empty for other data sets. */
export function inventedNames(config: Readonly<Record<string, unknown>> | null | undefined): string {
  const isInvented = ["practice", "starter"].includes(String(config?.questions_path));
  return isInvented ? "Names in these questions are invented on purpose, so that nothing can be known by heart." : "";
}
