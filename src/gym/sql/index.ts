// A database behind glass: open from bytes, describe, sample, run one guarded SELECT.
export * from "./create.ts";
export * from "./database.ts";
export * from "./database-pool.ts";
export * from "./faults.ts";
export * from "./lexer.ts";
export * from "./limits.ts";
export { ALLOWED_FUNCTIONS, limitStatementTime, sharingTime } from "./sandbox.ts";
export { loadSqlite } from "./sqlite.ts";
