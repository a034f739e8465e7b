// Descriptions and parsers of options that many commands have, so that each reads the same everywhere.

/** --data: which data set. */
export const DATA = "data set: bundled, practice, starter, spider10[:PATH], an imported name or a path";
/** --db-dir: where a question file's databases are. */
export const DB_DIR = "databases of a question file (default: databases/ near it)";
/** --seed of a data set that is generated. */
export const DATA_SEED = "seed of a generated data set (bundled, practice, starter, spider10)";
/** --json. */
export const JSON_OUTPUT = "print one JSON object";
/** --model: where a model may come from. */
export const MODEL_SOURCES = "a folder, a GGUF file, ollama:NAME or a name on the Hub";
/** --step-budget. */
export const STEP_BUDGET = "actions per episode, as in training; the starter preset has 8, a server 15";
