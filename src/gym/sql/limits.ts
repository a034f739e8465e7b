// Resource limits for untrusted SQL, each with its reason. All but the time limit are deterministic.

/** Maximum bytes of an SQL text. Spider's longest gold query has 577, BIRD's about 1,300. */
export const MAX_SQL_BYTES = 10_000;

/** Initial maximum bytes of a string or blob inside SQLite, since one instruction may copy or compare a whole value. A statement that needs a longer one is run again with the limit for large values, then with the one for huge values. */
export const MAX_VALUE_BYTES = 16_384;

/** Maximum bytes of a large value, so that long stored texts can be sampled, truncated and searched. */
export const MAX_LARGE_VALUE_BYTES = 131_072;

/** Instructions charged per instruction while large values are allowed: 100,000 rows can still be searched, and the work on long values stays bounded. */
export const LARGE_VALUE_WEIGHT = 64;

/** Maximum bytes of a huge value. Longer values cannot be read, only counted and measured. */
export const MAX_HUGE_VALUE_BYTES = 1_000_000;

/** Instructions charged per instruction while huge values are allowed. */
export const HUGE_VALUE_WEIGHT = 256;

/** Maximum virtual-machine instructions per statement: about a second of work. The same statement always stops at the same instruction. */
export const MAX_INSTRUCTIONS = 30_000_000;

/** Instructions between progress checks; at 100, checking has no measurable cost. */
export const INSTRUCTIONS_PER_CHECK = 100;

/** Limits of the integrity check of a whole file, in instructions and milliseconds: a multiple of what a statement may use. */
export const MAX_CHECK_INSTRUCTIONS = 300_000_000;
export const MAX_CHECK_MILLISECONDS = 50_000;

/** Time limit for work that instructions do not measure. Hitting it depends on the machine, so the episode is then unscorable. */
export const MAX_MILLISECONDS = 5_000;

/** Maximum rows kept of a result, more than a player can use. A longer result is truncated and says so. */
export const MAX_ROWS = 1_000;

/** Maximum bytes kept of a result, counted as text. Bounds memory if rows are wide. */
export const MAX_RESULT_BYTES = 1_000_000;

/** Maximum bytes kept of a cell. A whole row keeps at most MAX_RESULT_BYTES, so with more than 61 columns each cell's share is smaller. */
export const MAX_CELL_BYTES = 16_384;

/** Maximum working memory of a statement: sorters, temporary tables, values. Counted from the statement's start, so that it does not depend on what else is open. */
export const MAX_STATEMENT_BYTES = 64 * 1024 * 1024;

/** Maximum working memory of SQLite for all connections, in addition to the limit above: an open database takes 140 KB, so 1,000 of them and a statement fit. Database files do not count. */
export const MAX_HEAP_BYTES = 512 * 1024 * 1024;

/** Maximum characters of a LIKE or GLOB pattern. Matching takes at most pattern × text steps and is charged for the steps it takes. */
export const MAX_PATTERN_LENGTH = 100;

/** Page cache per connection, in KiB. Small, since the file is already in memory. */
export const PAGE_CACHE_KIB = 128;

/** Maximum SELECTs in all views of a database together: compiling nested views takes native stack, which WebAssembly cannot check. */
export const MAX_VIEW_SELECTS = 300;

/** Maximum tables and views in a database; their descriptions are read when it is opened. */
export const MAX_TABLES = 5_000;

/** Maximum nesting of expressions. Parsing deep nesting takes native stack. */
export const MAX_EXPRESSION_DEPTH = 100;

/** Maximum SELECTs combined by UNION, INTERSECT and EXCEPT; also limits VALUES lists that are compiled row by row. */
export const MAX_COMPOUND_SELECTS = 50;

/** Maximum columns of a table or result. BIRD's widest table has 115. */
export const MAX_COLUMNS = 500;

/** Maximum size of a compiled program, in instructions: stops queries that double in size with each nested name. Spider's largest gold query has 132. */
export const MAX_PROGRAM = 5_000;

/** Maximum arguments of a function call. */
export const MAX_FUNCTION_ARGUMENTS = 32;

/** Rows shown by SAMPLE. */
export const SAMPLE_ROWS = 5;
