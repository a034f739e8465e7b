// A database behind glass: open from bytes, describe, sample, run one guarded SELECT.
export * from "./create.ts";
export * from "./database.ts";
export * from "./fault.ts";
export { ALLOWED_FUNCTIONS, limitStatementTime, sharingTime } from "./guard.ts";
export * from "./limits.ts";
export * from "./shelf.ts";
export { loadSqlite } from "./sqlite.ts";
export * from "./tokens.ts";
