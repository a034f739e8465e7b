// Settings that a remote engine cannot honour are refused by name.
import { UsageError } from "../../errors.ts";
import { LORA_MODULES, type LoraModule } from "../../lm/model/lora.ts";
import { checkRemoteLoss } from "../remote-losses.ts";
import type { GRPOConfig } from "./schema.ts";

/** LoRA's alpha on servers: the Tinker API has none, and this is what they use. */
const ALPHA = 32;

const ATTENTION: readonly LoraModule[] = LORA_MODULES.slice(0, 4);
const MLP: readonly LoraModule[] = LORA_MODULES.slice(4);

/** Throws UsageError for settings that do not go with `engine`, or only with it. */
export function checkRemote(config: GRPOConfig): void {
  const { engine, temperature, min_p, lora_alpha } = config;
  if (engine === null) {
    for (const key of ["base_model", "engine_checkpoint"] as const)
      if (config[key] !== null)
        throw new UsageError({
          what: `${key} is of a remote engine, and there is none; it is`,
          value: config[key],
          remedy: "give its address: --engine URL",
        });
    return;
  }
  const refuse = (key: keyof GRPOConfig, remedy: string) => {
    throw new UsageError({ what: `a remote engine does not go with ${key}`, value: String(config[key]), remedy });
  };
  if (!config.use_peft) refuse("use_peft", "the Tinker API trains LoRA adapters: leave it out");
  if (temperature !== 1) refuse("temperature", "the Tinker API's losses have none: set it to 1");
  if (min_p) refuse("min_p", "leave it out");
  if (lora_alpha !== ALPHA) refuse("lora_alpha", `the Tinker API has none, and servers use ${ALPHA}`);
  for (const key of ["sft_steps", "self_taught_rounds"] as const)
    if (config[key] > 0) refuse(key, "run `sqlenv sft --engine` first, and give its checkpoint as --engine-checkpoint");
  checkRemoteLoss(config);
  modulesOf(config);
}

/** Which modules have adapters, as the Tinker API names them. */
export function modulesOf({ lora_target_modules: modules }: Pick<GRPOConfig, "lora_target_modules">): {
  readonly train_attn: boolean;
  readonly train_mlp: boolean;
} {
  const has = (part: readonly LoraModule[]) => part.every((name) => modules === null || modules.includes(name));
  const [train_attn, train_mlp] = [has(ATTENTION), has(MLP)];
  if (modules !== null && modules.length !== (train_attn ? ATTENTION.length : 0) + (train_mlp ? MLP.length : 0))
    throw new UsageError({
      what: "a remote engine adapts all modules of the attention, of the MLP, or of both, not lora_target_modules",
      value: modules.join(","),
      remedy: `give ${ATTENTION.join(",")}, or ${MLP.join(",")}, or leave it out`,
    });
  return { train_attn, train_mlp };
}
