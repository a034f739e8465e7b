// The prompt a model is trained with. It is the one that every player that speaks uses, and lives with them.
export { formatObservation, getSystemPrompt, MAX_SHOWN_RESULT } from "../players/index.ts";
