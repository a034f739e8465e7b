// trainAgent under Node.
import { agentTraining, type TrainAgentOptions } from "../agents/train-agent.ts";
import type { TrainingResult } from "./records.ts";
import { runTraining } from "./train.node.ts";

/** As index.ts's `trainAgent`; a run's folder also gets the settings. */
export async function trainAgent(options: TrainAgentOptions): Promise<TrainingResult | null> {
  return runTraining(agentTraining(options));
}
