// Files dropped anywhere on the page.

/** Whether a file is recorded episodes, by its name; any other is data of the visitor's own. */
export function isReplay(name: string): boolean {
  return /\.(?:jsonl?|ndjson|txt)$/i.test(name);
}

export function wireDrops(onFiles: (files: readonly File[]) => void): void {
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length > 0) onFiles(files);
  });
}
