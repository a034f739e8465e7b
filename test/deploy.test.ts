// The files that deploy the server name what exists: paths, command, port.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (file: string) => readFileSync(resolve(root, file), "utf8");

test("the Dockerfile copies what is there and starts a command that exists", () => {
  const docker = read("Dockerfile");
  const copied = [...docker.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap((match) => match[1]!.split(" "));
  expect(copied.length).toBeGreaterThan(5);
  expect(copied.filter((path) => !existsSync(resolve(root, path)))).toEqual([]);
  const [node, main, ...flags] = JSON.parse(/^CMD (\[.*\])$/m.exec(docker)![1]!) as string[];
  expect([node, main]).toEqual(["node", "dist/cli/main.js"]);
  const help = execFileSync(process.execPath, [resolve(root, main!), flags[0]!, "--help"], { encoding: "utf8" });
  for (const flag of flags.filter((text) => text.startsWith("--"))) expect(help).toContain(flag);
});

test("compose, OpenEnv and Space files agree on the port", () => {
  const compose = parse(read("compose.yaml"));
  expect(compose.services.proxy.ports).toEqual(["8000:8000"]);
  expect(existsSync(resolve(root, compose.services.proxy.volumes[0].split(":")[0]))).toBe(true);
  expect(parse(read("openenv.yaml"))).toMatchObject({ spec_version: 1, name: "sqlenv", type: "space", port: 8000 });
  const front = parse(read("deploy/space/README.md").split("---")[1]!);
  expect(front).toMatchObject({ sdk: "docker", app_port: 8000, base_path: "/web", tags: ["openenv"] });
  expect(read("Dockerfile")).toContain("PORT=8000");
});
