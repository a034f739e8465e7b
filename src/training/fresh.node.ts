// A fresh model as a folder.
import { saveModelFolder } from "../model/folder.node.ts";
import { type FreshOptions, freshModel } from "./fresh.ts";
import type { Transcript } from "./transcripts.ts";

/** Writes a model that has learned nothing yet, in the Hugging Face layout. */
export async function saveFreshModel(
  dir: string,
  transcripts: Iterable<Transcript>,
  options: FreshOptions = {},
): Promise<void> {
  await saveModelFolder(dir, freshModel(transcripts, options));
}
