// A Python that tests run clients in: the one that an environment variable names.
import { execFile, execFileSync } from "node:child_process";
import { promisify } from "node:util";

/** The version of the first of these packages that is installed; "" if there is none, or no interpreter. */
export function versionOf(interpreter: string, ...packages: string[]): string {
  if (interpreter === "") return "";
  const code = `
import importlib.metadata as m
for name in ${JSON.stringify(packages)}:
    try:
        print(m.version(name)); break
    except m.PackageNotFoundError: pass`;
  return execFileSync(interpreter, ["-c", code], { encoding: "utf8" }).trim();
}

/** Runs a Python file in its folder and returns what its last line of output says, in JSON. */
export async function runPython<T>(interpreter: string, folder: string, ...args: string[]): Promise<T> {
  const options = { cwd: folder, maxBuffer: 1 << 26, env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" } };
  const { stdout } = await promisify(execFile)(interpreter, args, options);
  return JSON.parse(stdout.trim().split("\n").at(-1)!) as T;
}
