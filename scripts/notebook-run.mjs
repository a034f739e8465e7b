// Executes the notebooks without a browser, as a newcomer would: in a fresh clone after `npm ci`.
// The one for Colab makes the clone, in which the other one then runs.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const DENO = "2.9.6"; // kept out of the lockfile: some registries lack its packages for other platforms
const CELL_SECONDS = 3600; // a busy machine takes ten times as long

/** Whether a jupyter is installed that can execute notebooks, such as Debian's. */
export function hasJupyter() {
  return spawnSync("jupyter", ["nbconvert", "--version"]).status === 0;
}

/** Deno's binary: the one on the path, else one that npm installs next to the project's packages, without install scripts; null if unavailable. */
export function findDeno() {
  if (spawnSync("deno", ["--version"]).status === 0) return "deno";
  const beside = join(root, "node_modules/.cache/deno");
  const libc = process.platform === "linux" ? "-glibc" : "";
  const binary = join(beside, `node_modules/@deno/${process.platform}-${process.arch}${libc}/deno`);
  if (existsSync(binary)) return binary;
  mkdirSync(beside, { recursive: true });
  writeFileSync(join(beside, "package.json"), "{}\n");
  const options = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  spawnSync("npm", ["install", ...options, `deno@${DENO}`], { cwd: beside });
  return existsSync(binary) ? binary : null;
}

export const NOTEBOOKS = ["train_grpo_colab.ipynb", "train_grpo.ipynb"];

/** Executes notebooks with the given settings instead of the preset's and returns them with their outputs. Failed cells contain their error. */
export async function runNotebooks({ deno, settings = {}, names = NOTEBOOKS, onStart = () => {} }) {
  const place = mkdtempSync(join(tmpdir(), "sqlenv-notebooks-"));
  try {
    const kernels = kernelFolder(place, deno);
    const flags = Object.entries(settings).map(([key, value]) => `--${key.replaceAll("_", "-")} ${value}`);
    const parameters = { REPO: repository(place), EXTRA: flags.join(" "), mine: settings };
    const clone = join(place, "sqlenv");
    const executed = {};
    for (const name of NOTEBOOKS.filter((one) => names.includes(one))) {
      onStart(name);
      const isColab = name === NOTEBOOKS[0];
      if (!isColab && !existsSync(clone)) install(parameters.REPO, clone);
      const notebook = JSON.parse(readFileSync(join(root, "notebooks", name), "utf8"));
      const file = join(isColab ? place : join(clone, "notebooks"), `run-${name}`);
      executed[name] = withoutFolder(await execute(withParameters(notebook, parameters), file, kernels), place);
    }
    return executed;
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** A clone, installed as the README says. */
function install(repository, clone) {
  execFileSync("git", ["clone", "--quiet", repository, clone]);
  execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: clone, stdio: "ignore" });
}

/** The outputs as from a home folder: the temporary one means nothing to a reader. */
function withoutFolder(notebook, place) {
  const cells = notebook.cells.map((cell) =>
    cell.outputs ? { ...cell, outputs: JSON.parse(JSON.stringify(cell.outputs).replaceAll(place, "~")) } : cell,
  );
  return { ...notebook, cells };
}

/** A folder in which jupyter finds the Deno kernel. */
function kernelFolder(place, deno) {
  const folder = join(place, "jupyter/kernels/deno");
  mkdirSync(folder, { recursive: true });
  const argv = [deno, "jupyter", "--kernel", "--conn", "{connection_file}"];
  writeFileSync(join(folder, "kernel.json"), JSON.stringify({ argv, display_name: "Deno", language: "typescript" }));
  return join(place, "jupyter");
}

/** The working tree as a repository to clone from. */
function repository(place) {
  const made = new Set(["node_modules", "dist", "runs", "coverage", ".git"]);
  const folder = join(place, "origin");
  cpSync(root, folder, { recursive: true, filter: (file) => !made.has(basename(file)) });
  const who = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"];
  const git = (...args) => execFileSync("git", [...who, ...args], { cwd: folder });
  git("init", "--quiet", "--initial-branch=main");
  git("add", "--all");
  git("commit", "--quiet", "--message", "working tree");
  return `file://${folder}`;
}

/** The cell that is tagged `parameters`, with other values. */
function withParameters(notebook, parameters) {
  const changed = (line) => {
    const [, head, name, tail] = /^((?:const )?(\w+) = )(?:"[^"]*"|\{[^}]*\})(.*)$/s.exec(line) ?? [];
    return name in parameters ? `${head}${JSON.stringify(parameters[name])}${tail}` : line;
  };
  const cells = notebook.cells.map((cell) =>
    cell.metadata.tags?.includes("parameters") ? { ...cell, source: cell.source.map(changed) } : cell,
  );
  return { ...notebook, cells };
}

/** Deno's kernel may report a cell as finished before its last output arrives, which jupyter then loses; so cells end with a short wait. */
const LATER = "\nawait new Promise((resolve) => setTimeout(resolve, 300));";

/** The notebook with its outputs. */
async function execute({ cells, ...rest }, file, kernels) {
  const isDeno = rest.metadata.kernelspec.name === "deno";
  const patient = (cell) => (cell.cell_type === "code" ? { ...cell, source: [...cell.source, LATER] } : cell);
  writeFileSync(file, JSON.stringify({ ...rest, cells: isDeno ? cells.map(patient) : cells }));
  const options = [`timeout=${CELL_SECONDS}`, "record_timing=False"].map((one) => `--ExecutePreprocessor.${one}`);
  const args = ["nbconvert", "--to", "notebook", "--execute", "--allow-errors", "--inplace", ...options, file];
  const env = { ...process.env, JUPYTER_PATH: kernels, NO_COLOR: "1" };
  const child = spawn("jupyter", args, { cwd: dirname(file), env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    said += text;
  });
  const code = await new Promise((resolve, reject) => child.on("close", resolve).on("error", reject));
  if (code !== 0) throw new Error(`jupyter ended with ${code}:\n${said.trim().split("\n").slice(-8).join("\n")}`);
  const executed = JSON.parse(readFileSync(file, "utf8"));
  return { ...rest, cells: executed.cells.map((cell, i) => ({ ...cell, source: cells[i].source })) };
}
