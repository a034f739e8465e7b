// Players: random, scripted and oracle players, models and chat endpoints, and their prompts and parser.
export * from "./chat.ts";
export * from "./lib/parse-observation.ts";
export * from "./model.ts";
export * from "./player.ts";
export {
  type ChatPrompt,
  Conversation,
  type ConversationOptions,
  checkRoom,
  type Turns,
} from "./prompts/conversation.ts";
export * from "./prompts/prompt.ts";
export { SHOT_COUNTS, type ShotCount } from "./prompts/shots.ts";
export { MAX_SHOWN_RESULT, type Shown } from "./prompts/shown.ts";
export { type ActionTool, actionTools, parseCall } from "./prompts/tools.ts";
export * from "./prompts/writer.ts";
export * from "./scripted/guesser.ts";
export * from "./scripted/keyword.ts";
export * from "./scripted/looker.ts";
export * from "./scripted/oracle.ts";
export * from "./scripted/random.ts";
export * from "./scripted/scripted.ts";
export * from "./scripted/teacher.ts";
export * from "./text-policy.ts";
