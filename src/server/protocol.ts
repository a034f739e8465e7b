// What the server's main thread and its environment threads say to each other.
import type { EnvironmentOptions } from "../env/index.ts";
import type { QuestionRecord } from "../questions/index.ts";

/** What a thread is started with: the questions, and the database files in memory that all threads share. */
export interface ThreadSpec {
  readonly name: string;
  readonly questions: readonly QuestionRecord[];
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly doubleQuotedStrings: boolean;
  readonly environment: EnvironmentOptions;
}

/** What a session is asked. */
export type Ask =
  | { readonly verb: "open" }
  | { readonly verb: "frame" | "rpcFrame"; readonly text: string }
  | { readonly verb: "reset" | "step" | "state"; readonly body: string };

export type ToThread =
  | { readonly id: number; readonly session: string; readonly expires: number; readonly ask: Ask }
  | { readonly session: string; readonly ask: { readonly verb: "close" } };

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
  | { readonly id: number; readonly answer: Answer }
  | { readonly id: number; readonly refused: "late" | "lost" | "failed" | "factory"; readonly message: string };
