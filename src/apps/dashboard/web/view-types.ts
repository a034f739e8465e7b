// What every view of the page is given, and what it gives back.
import type { RunListing } from "../server/schemas.ts";
import type { Route } from "./route.ts";
import type { RunModel } from "./run-model.ts";
import type { Source } from "./run-source.ts";

export interface Context {
  readonly source: Source;
  readonly route: Route;
  readonly run: RunModel;
  readonly runs: readonly RunListing[];
  /** Other runs that are laid over this one in charts, loaded. */
  others(): Promise<readonly RunModel[]>;
}

export interface View {
  readonly element: HTMLElement;
  /** Something is new in the run. */
  update?(): void;
  destroy?(): void;
  /** A key that no control took. */
  onKey?(event: KeyboardEvent): void;
}
