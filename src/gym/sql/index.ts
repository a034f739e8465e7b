// Sandboxed SQLite databases: open from bytes, describe, sample, run one SELECT.
export { createDatabase, type NewTable } from "./create.ts";
export {
  type Cell,
  type Column,
  Database,
  type ForeignKey,
  type OpenOptions,
  type ResultTable,
  type RunOptions,
  type RunResult,
  type StorageClass,
  type Table,
} from "./database.ts";
export { DatabasePool, type DatabasePoolOptions, DatabaseShelf, type ShelfOptions } from "./database-pool.ts";
export { isSqlite, isUtf16 } from "./encoding.ts";
export {
  normalizeSql,
  quoteName,
  quoteText,
  type SqlToken,
  type SqlTokenKind,
  sqlSkeleton,
  type Token,
  type TokenKind,
  tokenize,
  tokenizeSql,
} from "./lexer.ts";
export {
  HUGE_VALUE_WEIGHT,
  INSTRUCTIONS_PER_CHECK,
  LARGE_VALUE_WEIGHT,
  MAX_CELL_BYTES,
  MAX_CHECK_INSTRUCTIONS,
  MAX_CHECK_MILLISECONDS,
  MAX_COLUMNS,
  MAX_COMPOUND_SELECTS,
  MAX_EXPRESSION_DEPTH,
  MAX_FUNCTION_ARGUMENTS,
  MAX_HEAP_BYTES,
  MAX_HUGE_VALUE_BYTES,
  MAX_INSTRUCTIONS,
  MAX_LARGE_VALUE_BYTES,
  MAX_MILLISECONDS,
  MAX_PATTERN_LENGTH,
  MAX_PROGRAM,
  MAX_RESULT_BYTES,
  MAX_ROWS,
  MAX_SQL_BYTES,
  MAX_STATEMENT_BYTES,
  MAX_TABLES,
  MAX_VALUE_BYTES,
  MAX_VIEW_SELECTS,
  PAGE_CACHE_KIB,
  SAMPLE_ROWS,
} from "./limits.ts";
export { ALLOWED_FUNCTIONS, limitStatementTime, sharingTime } from "./sandbox.ts";
export {
  isUnscorable,
  SQL_ERROR_CLASSES,
  SQL_FAULT_CLASSES,
  type SqlError,
  type SqlErrorClass,
  type SqlFault,
  type SqlFaultClass,
} from "./sql-error.ts";
export { loadSqlite } from "./sqlite.ts";
