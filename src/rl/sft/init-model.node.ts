// A fresh model as a folder.
import { saveModelFolder } from "../../lm/model/formats/folder.node.ts";
import { type FreshOptions, freshModel } from "./init-model.ts";
import type { Transcript } from "./transcripts.ts";

/** Writes a model that has learned nothing yet, in the Hugging Face layout. */
export async function saveFreshModel(
  dir: string,
  transcripts: Iterable<Transcript>,
  options: FreshOptions = {},
): Promise<void> {
  await saveModelFolder(dir, freshModel(transcripts, options));
}
