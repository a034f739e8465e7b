// `sqlenv playground`: writes the playground as a static site, for any file server.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { SqlEnvError, UsageError } from "../../../errors.ts";
import { loadModelFolder, saveModelFolder } from "../../../lm/model/formats/folder.node.ts";
import { isGgufFile, loadGguf } from "../../../lm/model/formats/gguf.node.ts";
import { resolveModel } from "../../../lm/model/formats/hub.node.ts";
import { MODEL_LIST, modelList, PLAYGROUND_MODEL, PLAYGROUND_SITE } from "../../playground/server.node.ts";
import { JSON_OUTPUT, MODEL_SOURCES } from "../options/common.ts";
import { output, printable } from "../terminal/output.ts";
import { checkFolder } from "../terminal/writable.ts";

interface PlaygroundFlags {
  readonly out: string;
  readonly model?: string;
  readonly json?: boolean;
}

/** Files of a model folder that the page reads. */
const MODEL_FILES =
  /^(?:config|generation_config|tokenizer|tokenizer_config)\.json$|^chat_template\.(?:json|jinja)$|^model\.safetensors$|^README\.md$/;

/** The `playground` command. */
export function playgroundCommand(): Command {
  return new Command("playground")
    .description("write the playground as a static site: play and train in a browser")
    .requiredOption("--out <folder>", "folder of the site; an existing playground is replaced")
    .option("--model <name>", `${MODEL_SOURCES} (default: the bundled starter)`)
    .option("--json", JSON_OUTPUT)
    .action(run);
}

async function run({ out: folder, model: name, json }: PlaygroundFlags): Promise<void> {
  const out = output({ json });
  if (!existsSync(join(PLAYGROUND_SITE, "index.html")))
    throw new SqlEnvError("not_built", { what: "the playground is not built", remedy: "run `npm run build`" });
  checkFolder("--out", folder);
  if (existsSync(folder) && readdirSync(folder).length > 0 && !isPlayground(folder))
    throw new UsageError({
      what: "the folder is not empty and no playground",
      value: folder,
      remedy: "choose another",
    });
  const model = await modelFolder(name);
  for (const old of ["assets", "model"]) rmSync(join(folder, old), { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const ownModel = join(PLAYGROUND_SITE, "model");
  cpSync(PLAYGROUND_SITE, folder, { recursive: true, filter: (from) => from !== ownModel });
  if (model && isGgufFile(model)) await saveAsFolder(model, join(folder, "model"));
  else if (model) {
    const chosen = readdirSync(model).filter((file) => MODEL_FILES.test(file));
    mkdirSync(join(folder, "model"), { recursive: true });
    for (const file of chosen) cpSync(join(model, file), join(folder, "model", file));
  }
  if (model) writeFileSync(join(folder, "model", MODEL_LIST), modelList(join(folder, "model")));
  out.line(`wrote ${printable(folder)}${model ? "" : ", without a model"}`);
  out.line(`open it with any file server, such as: python3 -m http.server --bind 127.0.0.1 -d ${printable(folder)}`);
  out.line("without files, and with more threads: sqlenv serve, which has the playground at its address");
  out.result({ folder, model });
}

function isPlayground(folder: string): boolean {
  const page = join(folder, "index.html");
  return existsSync(page) && readFileSync(page, "utf8").includes("<title>SQLEnv playground</title>");
}

/** Writes a GGUF file as a folder, which is what the page reads. */
async function saveAsFolder(gguf: string, folder: string): Promise<void> {
  const { config, tokenizer, chatTemplate, generationConfig, weights } = loadGguf(gguf);
  async function* tensors() {
    for (const name of weights.names) yield { name, data: await weights.read(name) };
  }
  try {
    const whole = { config, tokenizerFiles: tokenizer.files, chatTemplate, generationConfig };
    await saveModelFolder(folder, { ...whole, tensors: tensors() });
  } finally {
    await weights.close();
  }
}

/** The model's folder or GGUF file, checked; null if none is given and none is bundled. */
async function modelFolder(name: string | undefined): Promise<string | null> {
  if (name === undefined) return existsSync(PLAYGROUND_MODEL) ? PLAYGROUND_MODEL : null;
  const folder = await resolveModel(name);
  const { weights } = await loadModelFolder(folder);
  await weights.close();
  if (isGgufFile(folder) || existsSync(join(folder, "model.safetensors"))) return folder;
  throw new UsageError({ what: "a page cannot load weights in several files", value: name });
}
