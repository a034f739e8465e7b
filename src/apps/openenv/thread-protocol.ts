// Messages between the server's main thread and its environment threads.

import type { QuestionRecord } from "../../gym/data/index.ts";
import type { EnvironmentOptions } from "../../gym/env/index.ts";
import type { ActionForm } from "./schemas.ts";

/** A thread's data: the questions, and the database files in shared memory. */
export interface ThreadSpec extends ActionForm {
  readonly name: string;
  readonly questions: readonly QuestionRecord[];
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly doubleQuotedStrings: boolean;
  readonly environment: EnvironmentOptions;
}

/** A thread's data with a counter in shared memory: the number of other clients waiting for the thread. */
export interface ThreadData extends ThreadSpec {
  readonly others: Int32Array;
}

/** A request to a session. */
export type SessionRequest =
  | { readonly verb: "open" }
  | { readonly verb: "frame" | "rpcFrame" | "mcpFrame"; readonly text: string }
  | { readonly verb: "reset" | "step" | "state"; readonly body: string };

export type ToThread =
  /** `isAhead`: sent while the thread was busy; it is sent back unplayed if another client waits when its turn comes. */
  | { readonly id: number; readonly session: string; readonly ask: SessionRequest; readonly isAhead: boolean }
  | { readonly session: string; readonly verb: "close" | "reopen" };

/** The answer: a frame or body, and whether to close. */
export interface Answer {
  readonly text: string | null;
  readonly close?: number;
  readonly status?: number;
  /** A message type or an error code, for metrics. */
  readonly kind: string;
}

export type FromThread =
  | { readonly ready: true }
  | { readonly id: number; readonly returned: true }
  | ({ readonly id: number /** Time taken. */; readonly milliseconds: number } & (
      | { readonly answer: Answer }
      | { readonly refused: "lost" | "failed" | "factory"; readonly message: string }
    ));
