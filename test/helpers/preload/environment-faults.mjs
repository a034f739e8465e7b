// Preloaded into a process under test (NODE_OPTIONS=--import): environment threads fail as SQLENV_FAULT says when they step
// for the third time; only the first thread to get there if SQLENV_FAULT_ONCE names a file.
import { openSync } from "node:fs";
import { isMainThread, workerData } from "node:worker_threads";

const isEnvironments = !isMainThread && Array.isArray(workerData?.databases) && Array.isArray(workerData.questions);
const { SQLENV_FAULT: fault, SQLENV_FAULT_ONCE: once } = process.env;

/** Whether this thread is the first to get here; creating the file decides. */
function isFirst() {
  try {
    openSync(once, "wx");
    return true;
  } catch {
    return false;
  }
}

if (isEnvironments && fault === "cannot start") process.exit(7);
if (isEnvironments && fault) {
  const { SQLEnvironment } = await import("../../../dist/gym/env/index.js");
  const { step } = SQLEnvironment.prototype;
  let steps = 0;
  SQLEnvironment.prototype.step = function (action) {
    if (++steps === 3 && (once === undefined || isFirst())) {
      if (fault === "dies") process.exit(7);
      if (fault === "hangs") for (;;);
    }
    return step.call(this, action);
  };
}
