// Loads weights into a model, one tensor at a time, and reads them back.
import { ModelLoadError } from "../../../errors.ts";
import { type Model, parametersChanged } from "../parameters.ts";
import { checkWeights, firstNonFinite, type WeightSource } from "./safetensors.ts";

export interface LoadOptions {
  /** Name of the source in errors. @default "the weights" */
  readonly file?: string;
}

/**
 * Loads the model's weights. Checks names, shapes and dtypes before anything is written; rejects NaN and infinite
 * weights.
 */
export async function loadWeights(
  model: Model,
  source: Pick<WeightSource, "names" | "info" | "read">,
  { file = "the weights" }: LoadOptions = {},
): Promise<void> {
  checkWeights(source, new Map(model.tensors.map(({ name, shape }) => [name, shape])), file);
  for (const { name, shape, value } of model.tensors) {
    const data = await source.read(name);
    if (data.length !== value.length) {
      throw bad(file, `tensor ${name} of shape [${shape}] has ${value.length} numbers`, `${data.length} came`);
    }
    const wrong = firstNonFinite(data);
    if (wrong >= 0) throw bad(file, `tensor ${name} holds a number that is none, at ${wrong}`, data[wrong]!);
    model.device.write(value, data);
  }
  parametersChanged(model);
}

/** Yields every tensor by its name in a file, read from the device one at a time. */
export function* tensorsOf({ device, tensors }: Model): Generator<{ name: string; data: Float32Array }> {
  for (const { name, value } of tensors) yield { name, data: device.read(value) as Float32Array };
}

function bad(file: string, what: string, value: string | number): ModelLoadError {
  const remedy = "check that config.json and the weights belong together, and fetch the file again";
  return new ModelLoadError({ what: `${file}: ${what}`, value, remedy });
}
