// Preparing a training from a config that was resolved before, built since it has threads.
import type * as Prepare from "../../src/rl/run/prepare.node.ts";
import { built } from "./built.ts";

export const { prepare } = (await import(built("rl/run/prepare.node.js"))) as typeof Prepare;
