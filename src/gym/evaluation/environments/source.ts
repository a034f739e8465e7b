// Where environments run: in the calling thread, or on threads of their own.

import type { DataSet } from "../../data/index.ts";
import { type EnvironmentOptions, type EnvironmentRules, SQLEnvironment } from "../../env/index.ts";
import type { PlayableEnvironment } from "../../episode.ts";

/** An environment whose rules are known before it is reset. */
export type OpenedEnvironment = PlayableEnvironment & { readonly rules: EnvironmentRules };

/** Opens environments over one set of databases. */
export interface EnvironmentSource {
  open(options: EnvironmentOptions): OpenedEnvironment;
  /** Seconds that environments have worked on other threads so far, summed over threads. */
  readonly workSeconds?: number;
}

/** Environments that step synchronously in the calling thread. */
export function localEnvironments(data: DataSet): EnvironmentSource {
  return { open: (options) => new SQLEnvironment(data, options) };
}
