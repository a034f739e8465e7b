// Who acts: random, scripted and all-knowing players, any chat endpoint, and the prompt and parser models share.
export * from "./chat.ts";
export { Conversation, type ConversationOptions, checkRoom, type Turns } from "./conversation.ts";
export * from "./guesser.ts";
export * from "./keyword.ts";
export * from "./looker.ts";
export * from "./model.ts";
export * from "./notes.ts";
export * from "./oracle.ts";
export * from "./player.ts";
export * from "./prompt.ts";
export * from "./random.ts";
export * from "./scripted.ts";
export { SHOT_COUNTS, type ShotCount } from "./shots.ts";
export { MAX_SHOWN_RESULT, type Shown } from "./shown.ts";
export * from "./teacher.ts";
export { type ActionTool, actionTools, parseCall } from "./tools.ts";
export * from "./writer.ts";
