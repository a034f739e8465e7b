// The name of a database that is made from a source.

/** A name that is safe as a folder and in question ids. */
export function databaseName(name: string): string {
  const safe = name
    .normalize("NFC")
    .replace(/[^\p{L}\p{N}_-]+/gu, "_")
    .replace(/^[_-]+|_+$/g, "");
  return safe === "" ? "database" : safe.slice(0, 60);
}
