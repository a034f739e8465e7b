// What a view receives and returns.
import type { RunListing } from "../server/schemas.ts";
import type { Route } from "./route.ts";
import type { RunModel } from "./run-model.ts";
import type { Source } from "./run-source.ts";

export interface Context {
  readonly source: Source;
  readonly route: Route;
  readonly run: RunModel;
  readonly runs: readonly RunListing[];
  /** Loads the compared runs. */
  others(): Promise<readonly RunModel[]>;
}

export interface View {
  readonly element: HTMLElement;
  /** Called when the run has changed. */
  update?(): void;
  destroy?(): void;
  /** Called for keys no control handled. */
  onKey?(event: KeyboardEvent): void;
}
