// The dashboard's runs: given run folders, and those inside given folders.
import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { UsageError } from "../../../errors.ts";
import { RUN_FILES } from "../../../rl/run/read-folder.node.ts";
import { WatchedRun } from "./watched-run.node.ts";

export class RunList {
  readonly #paths: readonly string[];
  readonly #runs = new Map<string, WatchedRun>();

  /** @throws if a path is neither a run folder nor a folder of run folders */
  constructor(paths: readonly string[]) {
    this.#paths = paths.map((path) => resolve(path));
    for (const path of this.#paths) {
      if (!existsSync(path) || !statSync(path).isDirectory())
        throw new UsageError({ what: "no such run", value: path, remedy: "name a folder that a training wrote" });
      if (!isRun(path) && runsIn(path).length === 0)
        throw new UsageError({
          what: "neither a run's folder nor a folder of runs",
          value: path,
          remedy: `a run has at least one of ${RUN_FILES.join(", ")}`,
        });
    }
    this.list();
  }

  /** Current runs: a folder may have new ones. */
  list(): WatchedRun[] {
    const folders = new Set(this.#paths.flatMap((path) => (isRun(path) ? [path] : runsIn(path))));
    for (const [id, { folder }] of this.#runs) if (!folders.has(folder)) this.#runs.delete(id);
    const known = new Set([...this.#runs.values()].map(({ folder }) => folder));
    for (const folder of folders) {
      if (known.has(folder)) continue;
      const id = this.#freeName(basename(folder));
      this.#runs.set(id, new WatchedRun(folder, id));
    }
    return [...this.#runs.values()];
  }

  named(id: string): WatchedRun {
    const run = this.#runs.get(id) ?? this.list().find((run) => run.id === id);
    if (run) return run;
    throw new UsageError({ what: "no such run", value: id, remedy: `there are ${[...this.#runs.keys()].join(", ")}` });
  }

  #freeName(name: string, number = 1): string {
    const id = number === 1 ? name : `${name} (${number})`;
    return this.#runs.has(id) ? this.#freeName(name, number + 1) : id;
  }
}

function isRun(folder: string): boolean {
  return RUN_FILES.some((file) => existsSync(join(folder, file)));
}

/** Run folders in a folder, most recently modified first. */
function runsIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(folder, entry.name))
    .filter(isRun)
    .map((path) => ({ path, modified: statSync(path).mtimeMs }))
    .sort((a, b) => b.modified - a.modified)
    .map(({ path }) => path);
}
