// Players: random, scripted and oracle players, local models and chat endpoints, with their prompts and parser.
export {
  type AskOptions,
  ChatError,
  type ChatMessage,
  type ChatOptions,
  type ChatUsage,
  type Complete,
  chatClient,
  chatPlayer,
} from "./chat.ts";
export {
  type NotedColumn,
  type NotedDescription,
  type NotedResult,
  type NotedTable,
  type ParsedColumn,
  type ParsedDescription,
  type ParsedResult,
  type ParsedTable,
  parseDescription,
  parseResult,
  parseTables,
  readDescription,
  readResult,
  readTables,
} from "./lib/parse-observation.ts";
export { ModelGame, type ModelPlayerOptions, ModelPolicy, modelPlayer } from "./model.ts";
export type { Decision, EpisodeContext, Move, Player, Policy, Turn } from "./player.ts";
export {
  type ChatPrompt,
  Conversation,
  type ConversationOptions,
  checkRoom,
  type Turns,
} from "./prompts/conversation.ts";
export {
  type CustomPrompt,
  type Exchange,
  formatObservation,
  getSystemPrompt,
  PROMPT_NAMES,
  type Prompt,
  type PromptChoice,
  type PromptName,
  parseModelOutput,
  promptFor,
  promptId,
  wordsOf,
} from "./prompts/prompt.ts";
export { readSql } from "./prompts/read-sql.ts";
export { givenPrompt, givenPromptId, schemaText } from "./prompts/schema-given.ts";
export { SHOT_COUNTS, type ShotCount } from "./prompts/shots.ts";
export { MAX_SHOWN_RESULT, type Shown } from "./prompts/shown.ts";
export { type ActionTool, actionTools, parseCall } from "./prompts/tools.ts";
export { chatWriter, modelWriter, type WriteRequest, type Writer, type Written } from "./prompts/writer.ts";
export { SCRIPTED_NAMES, SCRIPTED_PLAYERS, type ScriptedName } from "./scripted/by-name.ts";
export { guesserPlayer } from "./scripted/guesser.ts";
export { keywordPlayer } from "./scripted/keyword.ts";
export { lookerPlayer } from "./scripted/looker.ts";
export { oraclePlayer } from "./scripted/oracle.ts";
export { flailerPlayer, randomPlayer } from "./scripted/random.ts";
export { answerFrom, type Script, scriptedPlayer } from "./scripted/scripted.ts";
export { type TeacherOptions, teacherPlayer } from "./scripted/teacher.ts";
export {
  type Message,
  type Reply,
  type Segment,
  type TextEpisode,
  TextPolicy,
  type TextPolicyOptions,
  type TokenSampler,
} from "./text-policy.ts";
