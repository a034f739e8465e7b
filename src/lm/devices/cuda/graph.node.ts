// CUDA graphs: launches that are captured once and replayed.
import type { Driver } from "./driver.node.ts";

const RELAXED = 2; // capture mode in which other threads may call the driver

/** Captures what `work` queues, without running it, as an executable graph. */
export function captureGraph(driver: Driver, work: () => void): number | bigint {
  const graphs: (number | bigint)[] = [0];
  driver.call("cuStreamBeginCapture_v2", driver.stream, RELAXED);
  let failure: unknown;
  try {
    work();
  } catch (error) {
    failure = error;
  }
  driver.call("cuStreamEndCapture", driver.stream, graphs);
  const graph = graphs[0]!;
  try {
    if (failure) throw failure;
    return driver.out("cuGraphInstantiateWithFlags", graph, 0);
  } finally {
    driver.call("cuGraphDestroy", graph);
  }
}

/** Measures the GPU time of the work that `work` queues, in milliseconds. */
export function timeOnGpu(driver: Driver, work: () => void): number {
  const [start, end] = [driver.out("cuEventCreate", 0), driver.out("cuEventCreate", 0)];
  driver.call("cuEventRecord", start, driver.stream);
  work();
  driver.call("cuEventRecord", end, driver.stream);
  driver.call("cuEventSynchronize", end);
  const milliseconds = [0];
  driver.call("cuEventElapsedTime", milliseconds, start, end);
  for (const event of [start, end]) driver.call("cuEventDestroy_v2", event);
  return milliseconds[0]!;
}
