// Which prompt a model is asked with: by name, with examples, or words of one's own from a file.
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

/** Characters of a prompt file; a longer one leaves no room in a context. */
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

/** Adds the options that choose a prompt. */
export function addPromptOptions(command: Command): Command {
  return command
    .addOption(
      promptOption("chat, model: what it is told (default: chat instruct, model as it was trained, or compact)"),
    )
    .addOption(shotsOption("chat, model: example episodes before the question"))
    .option("--prompt-file <file>", "chat, model: a system prompt of your own, as text or JSON (see the guide)");
}

export function promptOption(description: string): Option {
  return new Option("--prompt <name>", description).choices(PROMPT_NAMES);
}

export function shotsOption(description: string): Option {
  return new Option("--shots <number>", `${description}: ${SHOT_COUNTS.join(", ")}`).argParser(shots);
}

/** What the flags choose, over what would be used without them. */
export function promptChoice({ prompt, shots, promptFile }: PromptFlags, fallback: PromptChoice): PromptChoice {
  if (promptFile !== undefined) {
    const { prompt: base, ...custom } = readPromptFile(promptFile);
    return { prompt: prompt ?? base ?? "instruct", shots: shots ?? 0, custom };
  }
  const other = prompt !== undefined && prompt !== fallback.prompt; // examples are chosen with their prompt
  return { ...(other ? { prompt } : fallback), ...(shots !== undefined && { shots }) };
}

/** A file's prompt: JSON with `system` and perhaps `shots`, or the system prompt as it stands. */
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
    throw refuse(`the file has ${text.length} characters`, `${MAX_PROMPT_FILE} at most`);
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
      'such as {"system": "…", "shots": [{"user": "…", "assistant": "…"}]}',
    );
  }
  const parsed = promptFileSchema.safeParse(json);
  if (!parsed.success) {
    const { path, message } = parsed.error.issues[0]!;
    throw refuse(`${path.join(".") || "the file"}: ${message}`, "see the guide for its keys");
  }
  return { ...parsed.data, id: parsed.data.id ?? id };
}

function shots(value: string): ShotCount {
  const count = SHOT_COUNTS.find((count) => String(count) === value.trim());
  if (count === undefined) throw new InvalidArgumentError(`give ${SHOT_COUNTS.join(", ")}`);
  return count;
}
