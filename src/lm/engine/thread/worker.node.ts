// The engine's own worker thread, with cross-entropy only.
import { serveEngine } from "./serve.node.ts";

serveEngine();
