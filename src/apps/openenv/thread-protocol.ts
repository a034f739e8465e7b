// What the server's main thread and its environment threads say to each other.

import type { QuestionRecord } from "../../gym/data/index.ts";
import type { EnvironmentOptions } from "../../gym/env/index.ts";

/** What a thread is started with: the questions, and the database files in memory that all threads share. */
export interface ThreadSpec {
  readonly name: string;
  readonly questions: readonly QuestionRecord[];
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly doubleQuotedStrings: boolean;
  readonly environment: EnvironmentOptions;
}

/** The same, and a number in shared memory: the clients that wait for the thread beside the one it serves. */
export interface ThreadData extends ThreadSpec {
  readonly others: Int32Array;
}

/** What a session is asked. */
export type Ask =
  | { readonly verb: "open" }
  | { readonly verb: "frame" | "rpcFrame"; readonly text: string }
  | { readonly verb: "reset" | "step" | "state"; readonly body: string };

export type ToThread =
  /** What was sent ahead, while the thread had other work, is returned when another client waits by then. */
  | { readonly id: number; readonly session: string; readonly ask: Ask; readonly isAhead: boolean }
  | { readonly session: string; readonly verb: "close" | "reopen" };

/** What it answers: a frame or body, and how to go on. */
export interface Answer {
  readonly text: string | null;
  readonly close?: number;
  readonly status?: number;
  /** A message type or an error code, for counting. */
  readonly kind: string;
}

export type FromThread =
  | { readonly ready: true }
  | { readonly id: number; readonly returned: true }
  | ({ readonly id: number /** What it took. */; readonly milliseconds: number } & (
      | { readonly answer: Answer }
      | { readonly refused: "lost" | "failed" | "factory"; readonly message: string }
    ));
