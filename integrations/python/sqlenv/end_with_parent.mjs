// Ends the server when the pipe to its stdin closes, which happens however the Python process ends. Node loads this file
// in every thread of the server; only the main thread has the pipe.
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  process.stdin.on("end", () => process.emit("SIGTERM", "SIGTERM")).resume();
  process.stdin.unref();
}
