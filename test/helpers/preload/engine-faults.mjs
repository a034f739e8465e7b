// Preloaded into a process under test (NODE_OPTIONS=--import): makes the engine's thread fail as SQLENV_FAULT says, in its
// optimizer step number SQLENV_FAULT_STEP.
import { readFileSync, writeFileSync } from "node:fs";
import { isMainThread, workerData } from "node:worker_threads";

const isEngine = !isMainThread && typeof workerData?.folder === "string" && "trains" in workerData;
const { SQLENV_FAULT: fault, SQLENV_FAULT_STEP: faultStep = "3", SQLENV_FAULT_FIFO: fifo } = process.env;

if (isEngine && fault === "ends while loading") process.exit(7);
if (isEngine && fault) {
  const { LocalEngine } = await import("../../../dist/lm/engine/local-engine.js");
  const { SqlEnvError } = await import("../../../dist/errors.js");
  const { optimStep } = LocalEngine.prototype;
  LocalEngine.prototype.optimStep = async function (adam) {
    if (this.optimizer.step + 1 === Number(faultStep)) FAULTS[fault](this);
    return optimStep.call(this, adam);
  };

  const FAULTS = {
    /** Every call fails from now on, including `close`. */
    "device is lost": ({ model: { device } }) => {
      const fail = () => {
        throw new SqlEnvError("device_lost", { what: "the GPU was lost: cuStreamSynchronize failed", value: "700" });
      };
      for (let of = device; of !== Object.prototype; of = Object.getPrototypeOf(of))
        for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(of)))
          if (typeof value === "function" && name !== "constructor")
            Object.defineProperty(device, name, { value: fail });
    },
    "thread ends": () => process.exit(7),
    "thread throws": () => {
      setImmediate(() => {
        throw new Error("nobody catches this");
      });
    },
    /** Native code that does not return, like a hanging driver: reads a pipe that nobody writes to. */
    "thread hangs": () => {
      writeFileSync(`${fifo}.reached`, "");
      readFileSync(fifo);
    },
  };
}
