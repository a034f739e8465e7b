// The worker thread of a training's engine: the language model's, with the policy losses registered.
import { serveEngine } from "../lm/engine/thread/serve.node.ts";
import { POLICY_LOSSES } from "./loss.ts";

serveEngine({ losses: POLICY_LOSSES });
