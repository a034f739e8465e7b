// 25,000 almost valid messages over sockets, plain HTTP and MCP.
import { expect, test } from "vitest";
import { fuzz } from "../helpers/server-fuzz.ts";
import { serve } from "../helpers/server-place.ts";

test("every almost valid message gets a reply, and no thread is lost (25,000)", async () => {
  const server = await serve({ ratePerClient: 0 });
  for (let seed = 2; seed < 12; seed++) await fuzz(server, 2_500, seed);
  expect(server.sessions).toBe(0);
  await server.close();
}, 600_000);
