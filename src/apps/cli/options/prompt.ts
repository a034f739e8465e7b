// --prompt, --shots and --prompt-file: a built-in prompt, with examples, or a custom one from a file.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename, extname } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { z } from "zod";
import { messageOf, UsageError } from "../../../errors.ts";
import {
  type CustomPrompt,
  PROMPT_NAMES,
  type PromptChoice,
  type PromptName,
  SHOT_COUNTS,
  type ShotCount,
} from "../../../gym/players/index.ts";

export interface PromptFlags {
  readonly prompt?: PromptName;
  readonly shots?: ShotCount;
  readonly promptFile?: string;
}

/** Characters of a prompt file; a longer one would fill the context. */
const MAX_PROMPT_FILE = 50_000;

const promptFileSchema = z
  .object({
    id: z
      .string()
      .regex(/^[\w.@-]{1,64}$/, "1 to 64 letters, digits, dots, @ and dashes")
      .optional(),
    prompt: z.enum(PROMPT_NAMES).optional(),
    system: z.string().min(1),
    shots: z.array(z.object({ user: z.string().min(1), assistant: z.string().min(1) }).strict()).optional(),
  })
  .strict();

/** Adds the options that choose a prompt; `other` is the default prompt of models that were not trained here. */
export function addPromptOptions(command: Command, other = "compact; chat: instruct"): Command {
  return command
    .addOption(promptOption(`system prompt (default: the model's own from training, else ${other})`))
    .addOption(shotsOption("example episodes before the question"))
    .option("--prompt-file <file>", "custom system prompt, as text or JSON (see the guide)");
}

export function promptOption(description: string): Option {
  return new Option("--prompt <name>", description).choices(PROMPT_NAMES);
}

export function shotsOption(description: string): Option {
  return new Option("--shots <number>", `${description}: ${SHOT_COUNTS.join(", ")}`).argParser(shots);
}

/** The prompt the flags select; `fallback` fills in what they leave open. */
export function promptChoice({ prompt, shots, promptFile }: PromptFlags, fallback: PromptChoice): PromptChoice {
  if (promptFile !== undefined) {
    const { prompt: base, ...custom } = readPromptFile(promptFile);
    return { prompt: prompt ?? base ?? "instruct", shots: shots ?? 0, custom };
  }
  const other = prompt !== undefined && prompt !== fallback.prompt; // the fallback's examples belong to its prompt
  return { ...(other ? { prompt } : fallback), ...(shots !== undefined && { shots }) };
}

/** Reads a prompt file: JSON with `system` and optionally `shots`, or the system prompt as plain text. */
function readPromptFile(file: string): CustomPrompt & { readonly prompt?: PromptName | undefined } {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw new UsageError({ what: "--prompt-file cannot be read", value: file, remedy: messageOf(cause), cause });
  }
  const refuse = (what: string, remedy: string) =>
    new UsageError({ what: `--prompt-file: ${what}`, value: file, remedy });
  if (text.trim() === "") throw refuse("the file is empty", "write the system prompt into it");
  if (text.length > MAX_PROMPT_FILE)
    throw refuse(`the file has ${text.length} characters`, `use at most ${MAX_PROMPT_FILE}`);
  const sum = createHash("sha256").update(text).digest("hex").slice(0, 8);
  const name = basename(file, extname(file))
    .replace(/[^\w.-]/g, "_")
    .slice(0, 40);
  const id = `${name}@${sum}`;
  if (extname(file) !== ".json") return { id, system: text.trim() };
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw refuse(
      `not JSON (${messageOf(cause)})`,
      'write it like {"system": "…", "shots": [{"user": "…", "assistant": "…"}]}',
    );
  }
  const parsed = promptFileSchema.safeParse(json);
  if (!parsed.success) {
    const { path, message } = parsed.error.issues[0]!;
    throw refuse(`${path.join(".") || "the file"}: ${message}`, "see the guide for the keys");
  }
  return { ...parsed.data, id: parsed.data.id ?? id };
}

function shots(value: string): ShotCount {
  const count = SHOT_COUNTS.find((count) => String(count) === value.trim());
  if (count === undefined) throw new InvalidArgumentError(`give ${SHOT_COUNTS.join(", ")}`);
  return count;
}
