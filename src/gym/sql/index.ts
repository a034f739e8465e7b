// Sandboxed SQLite databases: open from bytes, describe, sample, run one SELECT.
export * from "./create.ts";
export * from "./database.ts";
export * from "./database-pool.ts";
export * from "./lexer.ts";
export * from "./limits.ts";
export { ALLOWED_FUNCTIONS, limitStatementTime, sharingTime } from "./sandbox.ts";
export * from "./sql-error.ts";
export { loadSqlite } from "./sqlite.ts";
