// Lists what was skipped, by file, below vitest's own summary: a test that never runs anywhere should be noticed.
import type { Reporter, TestCase, TestModule, TestSuite } from "vitest/node";

export default class SkippedReporter implements Reporter {
  readonly #hasQuick: boolean;

  /** @param options.quick whether quick tests run; if not, only tests skipped with a reason are listed */
  constructor({ quick }: { readonly quick: boolean }) {
    this.#hasQuick = quick;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const lines = modules.flatMap(skippedIn).filter((line) => this.#hasQuick || /skipped|\(/.test(line));
    if (lines.length > 0) console.log(`\nSkipped, and why where it is known:\n${lines.sort().join("\n")}\n`);
  }
}

function skippedIn(module: TestModule): string[] {
  const counts = new Map<string, number>();
  for (const test of module.children.allTests("skipped")) {
    const result = test.result();
    const note = result.state === "skipped" && result.note;
    const what = note ? `${test.name} (${note})` : outermostSkipped(test).name;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  return [...counts].map(
    ([what, count]) => `  ${module.relativeModuleId}: ${what}${count > 1 ? `, ${count} tests` : ""}`,
  );
}

/** The suite that was skipped as a whole, or the test itself. */
function outermostSkipped(test: TestCase): TestCase | TestSuite {
  let found: TestCase | TestSuite = test;
  for (let at: TestCase["parent"] = test.parent; at.type === "suite"; at = at.parent)
    if (at.options.mode === "skip") found = at;
  return found;
}
