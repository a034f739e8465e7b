// Five hundred messages that are nearly right; twenty-five thousand are in the slow suite.
import { expect, test } from "vitest";
import { fuzz } from "./server-fuzz.ts";
import { serve } from "./server-place.ts";

test("every message that is nearly right gets an answer, and no thread is lost", async () => {
  const server = await serve({ ratePerClient: 0 });
  await fuzz(server, 500, 1);
  expect(server.sessions).toBe(0);
  await server.close();
});
