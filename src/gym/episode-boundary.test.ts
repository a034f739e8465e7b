import { expect, test } from "vitest";
import { PlayerError } from "../errors.ts";
import { EpisodeBoundary } from "./episode-boundary.ts";

const thrownBy = (work: () => Promise<unknown>) => work().catch((error: unknown) => error);

test("errors of the environment and PlayerErrors are the episode's, all others are rethrown", async () => {
  const boundary = new EpisodeBoundary(undefined);
  const lost = await thrownBy(() => boundary.call(() => Promise.reject(new TypeError("connection lost"))));
  expect(boundary.errorOf(lost)).toBe("connection lost");
  const silent = new PlayerError("no_reply", { what: "the endpoint did not answer" });
  expect(boundary.errorOf(silent)).toBe(silent.message);
  const bug = new TypeError("a bug");
  expect(() => boundary.errorOf(bug)).toThrow(bug);
});

test("an abort ends waiting for code that ignores it, and its reason replaces any other error", async () => {
  const controller = new AbortController();
  const boundary = new EpisodeBoundary(controller.signal);
  const waiting = thrownBy(() => boundary.call(() => boundary.wait(new Promise(() => {}))));
  const reason = new Error("stopped");
  controller.abort(reason);
  const thrown = await waiting;
  expect(() => boundary.errorOf(thrown)).toThrow(reason);
  await expect(boundary.wait(1)).rejects.toBe(reason);
  boundary.end();
});
