// The image, built without Docker: each stage is a folder with exactly what its COPY lines name.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { commandOf, copyInto, ROOT, readCopy, readStages, type Stage } from "../helpers/dockerfile.ts";

const place = mkdtempSync(join(tmpdir(), "sqlenv-image-"));
const stages = readStages();
const final = stages.at(-1)!;
const app = join(place, "final");
/** Runs as the image's user, who owns nothing there, if this process may change its user. */
const user = process.getuid?.() === 0 ? { uid: 1000, gid: 1000 } : {};
const env = { PATH: process.env.PATH!, NODE_ENV: "production", PORT: "0", HOME: "/nonexistent" };

beforeAll(() => {
  chmodSync(place, 0o755);
  const folders = new Map<string, string>();
  for (const stage of stages) {
    const folder = join(place, stage.name ?? "final");
    mkdirSync(folder);
    make(stage, folder, folders);
    if (stage.name) folders.set(stage.name, folder);
  }
}, 300_000);
afterAll(() => rmSync(place, { recursive: true }), 60_000);

/** Executes a stage's lines. What npm would download is taken from this checkout. */
function make(stage: Stage, folder: string, folders: ReadonlyMap<string, string>): void {
  for (const { name, text } of stage.instructions) {
    if (name === "COPY") copyInto(folder, readCopy(text), folders);
    else if (name === "RUN" && text.startsWith("npm ci")) {
      symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    } else if (name === "RUN" && text.startsWith("npm prune")) keepProduction(folder);
    else if (name === "RUN") execFileSync("sh", ["-c", text], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  }
}

/** In place of `npm prune --omit=dev`: the installed packages that the lockfile does not mark as needed for development. */
function keepProduction(folder: string): void {
  rmSync(join(folder, "node_modules"));
  const { packages } = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8"));
  for (const [path, { dev }] of Object.entries<{ dev?: boolean }>(packages)) {
    const source = join(ROOT, path);
    if (path !== "" && !dev && existsSync(source)) cpSync(source, join(folder, path), { recursive: true });
  }
}

const run = (command: readonly string[], extra: Record<string, string> = {}) =>
  execFileSync(process.execPath, command.slice(1), {
    cwd: app,
    env: { ...env, ...extra },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    ...user,
  });

test("the image has the command and its packages, and no development dependencies", () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  expect(run(["node", "dist/apps/cli/main.js", "--version"]).trim()).toBe(version);
  expect(existsSync(join(app, "node_modules/zod"))).toBe(true);
  for (const path of ["node_modules/vite", "node_modules/typescript", "src", "dist/web/playground/model"]) {
    expect(existsSync(join(app, path)), path).toBe(false);
  }
});

test("the image serves the environment, the pages and the model, passes its health check, and ends on SIGTERM", async () => {
  const [, ...args] = commandOf(final, "CMD");
  const server = spawn(process.execPath, [...args, "--json"], { cwd: app, env, ...user });
  const exit = once(server, "exit");
  let log = "";
  server.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const [line] = (await Promise.race([once(server.stdout, "data"), exit.then(() => [`{"stderr": ""}`])])) as [Buffer];
  const { port } = JSON.parse(String(line)) as { port?: number };
  expect(port, log).toBeGreaterThan(0);
  const url = `http://127.0.0.1:${port}`;
  const statusOf = async (path: string) => (await fetch(url + path)).status;
  expect(await statusOf("/health")).toBe(200);
  expect(await statusOf("/web/")).toBe(200);
  expect(await statusOf("/web/model/model.safetensors")).toBe(200);
  run(commandOf(final, "HEALTHCHECK"), { PORT: String(port) });
  server.kill("SIGTERM");
  expect(await exit).toEqual([0, null]);
});

test("the health check fails when no server answers", () => {
  expect(() => run(commandOf(final, "HEALTHCHECK"), { PORT: "1" })).toThrow();
});

test("the image can do a dry run of the default training", () => {
  const plan = JSON.parse(run(["node", "dist/apps/cli/main.js", "train", "--dry-run", "--json"])) as object;
  expect(Object.keys(plan).length).toBeGreaterThan(0);
});
