// 500 almost valid messages; 25,000 are in the slow suite.
import { expect, test } from "vitest";
import { fuzz } from "../helpers/server-fuzz.ts";
import { serve } from "../helpers/server-place.ts";

test("every almost valid message gets a reply, and no thread is lost", async () => {
  const server = await serve({ ratePerClient: 0 });
  await fuzz(server, 500, 1);
  expect(server.sessions).toBe(0);
  await server.close();
});
