// The default worker thread of an engine, with cross-entropy as its only loss.
import { serveEngine } from "./serve.node.ts";

serveEngine();
