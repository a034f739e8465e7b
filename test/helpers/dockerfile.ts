// Reads the Dockerfile and makes a stage's folder without Docker: the paths that its COPY lines name, without what .dockerignore
// excludes.
import { cpSync, existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface Instruction {
  /** In capitals: COPY, RUN … */
  readonly name: string;
  readonly text: string;
}

export interface Stage {
  readonly image: string;
  readonly name: string | undefined;
  readonly instructions: readonly Instruction[];
}

export interface Copy {
  /** The stage it copies from; undefined for the build context. */
  readonly from: string | undefined;
  readonly sources: readonly string[];
  readonly target: string;
}

/** The stages of a Dockerfile, with the defaults of its ARGs filled in. */
export function readStages(text = readFileSync(join(ROOT, "Dockerfile"), "utf8")): Stage[] {
  const stages: { image: string; name: string | undefined; instructions: Instruction[] }[] = [];
  const args = new Map<string, string>();
  const lines = text.replace(/^\s*#.*\n/gm, "").replace(/\\\n/g, " ");
  for (const [, name = "", rest = ""] of lines.matchAll(/^\s*([A-Za-z]+)[ \t]+(.+)$/gm)) {
    const instruction = { name: name.toUpperCase(), text: rest.trim() };
    if (instruction.name === "FROM") {
      const [, image = "", , stage] = /^(\S+)( AS (\S+))?$/i.exec(instruction.text)!;
      stages.push({ image: image.replace(/\$\{(\w+)\}/g, (_, key) => args.get(key)!), name: stage, instructions: [] });
    } else if (stages.length > 0) {
      stages.at(-1)!.instructions.push(instruction);
    } else {
      const [key = "", value = ""] = instruction.text.split("=");
      args.set(key, value);
    }
  }
  return stages;
}

export function readCopy(text: string): Copy {
  const words = text.split(/\s+/);
  const flags = words.filter((word) => word.startsWith("--"));
  const paths = words.filter((word) => !word.startsWith("--"));
  const from = flags.find((flag) => flag.startsWith("--from="))?.slice("--from=".length);
  return { from, sources: paths.slice(0, -1), target: paths.at(-1)! };
}

/** The list in square brackets of a CMD or of a HEALTHCHECK's CMD. */
export function commandOf(stage: Stage, name: "CMD" | "HEALTHCHECK"): string[] {
  const { text } = stage.instructions.find((instruction) => instruction.name === name)!;
  return JSON.parse(text.slice(text.indexOf("["))) as string[];
}

/** Whether .dockerignore excludes a path; the last pattern that matches it or a parent folder decides. */
export function isIgnored(path: string, rules = readFileSync(join(ROOT, ".dockerignore"), "utf8")): boolean {
  let ignored = false;
  for (const line of rules.split("\n")) {
    const rule = line.trim();
    if (rule === "" || rule.startsWith("#")) continue;
    const pattern = rule.replace(/^!/, "").replace(/^\/|\/$/g, "");
    const source = pattern
      .replace(/[.+^${}()|[\]\\]/g, "\\$&")
      .replace(/\*\*\/|\*\*|\*|\?/g, (star) => ({ "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*" })[star] ?? "[^/]");
    if (new RegExp(`^${source}(?:/.*)?$`).test(path)) ignored = !rule.startsWith("!");
  }
  return ignored;
}

/** Executes one COPY line: into `folder`, from the build context or from another stage's folder. */
export function copyInto(folder: string, copy: Copy, stages: ReadonlyMap<string, string>): void {
  const from = copy.from === undefined ? ROOT : stages.get(copy.from)!;
  for (const source of copy.sources) {
    const path = join(from, copy.from === undefined ? source : relative("/app", source));
    if (!existsSync(path)) throw new Error(`COPY ${source}: there is no such path`);
    const isFolder = statSync(path).isDirectory();
    const into = isFolder || !copy.target.endsWith("/") ? copy.target : join(copy.target, basename(source));
    const kept = (file: string) => copy.from !== undefined || file === from || !isIgnored(relative(from, file));
    mkdirSync(join(folder, into, ".."), { recursive: true });
    cpSync(path, join(folder, into), { recursive: true, verbatimSymlinks: true, filter: kept });
    if (!existsSync(join(folder, into))) throw new Error(`COPY ${source}: .dockerignore leaves it out`);
  }
}
