// The environments of a command's player.
import type { DataSet } from "../../gym/data/index.ts";
import { DeviceEnvironments } from "../../rl/run/environments.node.ts";
import { type Output, styled } from "./terminal/output.ts";

/** Environments for a player: on threads if it is a model on a GPU. */
export async function environmentsFor(
  { device = "cpu" }: { readonly device?: string },
  data: DataSet,
  out: Output,
): Promise<DeviceEnvironments> {
  const environments = new DeviceEnvironments(data, { onNote: (text) => out.line(styled("yellow", text)) });
  await environments.start(device);
  return environments;
}
