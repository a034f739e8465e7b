// Twenty-five thousand messages that are nearly right, by sockets, plain HTTP and MCP.
import { expect, test } from "vitest";
import { fuzz } from "./server-fuzz.ts";
import { serve } from "./server-place.ts";

test("every one gets an answer, and no thread is lost", async () => {
  const server = await serve({ ratePerClient: 0 });
  for (let seed = 2; seed < 12; seed++) await fuzz(server, 2_500, seed);
  expect(server.sessions).toBe(0);
  await server.close();
}, 600_000);
