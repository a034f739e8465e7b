// Resource limits of untrusted SQL, each with its reason; all but the time limit are deterministic.

/** One SQL text, in bytes. The longest gold query of Spider has 577, of BIRD about 1,300. */
export const MAX_SQL_BYTES = 10_000;

/** One string or blob anywhere inside SQLite, at first: an instruction may copy or compare one. A statement that needs a longer one is run again with the limit for large values, then with the limit for huge ones. */
export const MAX_VALUE_BYTES = 16_384;

/** One large value, so that long stored texts can be sampled, truncated and searched. */
export const MAX_LARGE_VALUE_BYTES = 131_072;

/** What each instruction counts for where values may be large: 100,000 rows can still be searched, and the work on long values stays bounded. */
export const LARGE_VALUE_WEIGHT = 64;

/** One huge value; longer ones cannot be read, only counted and measured. */
export const MAX_HUGE_VALUE_BYTES = 1_000_000;

/** What each instruction counts for where values may be huge. */
export const HUGE_VALUE_WEIGHT = 256;

/** Virtual-machine instructions of one statement: about a second of work. The same statement always stops at the same instruction. */
export const MAX_INSTRUCTIONS = 30_000_000;

/** Instructions between progress checks; at 100 their cost is not measurable. */
export const INSTRUCTIONS_PER_CHECK = 100;

/** Instructions and time of an integrity check of a whole file, a multiple of what a statement may use. */
export const MAX_CHECK_INSTRUCTIONS = 300_000_000;
export const MAX_CHECK_MILLISECONDS = 50_000;

/** Backstop for what instructions do not measure. Hitting it depends on the machine, so such an episode is unscorable. */
export const MAX_MILLISECONDS = 5_000;

/** Rows kept of one result: more than a player can use. A longer result is truncated, and says so. */
export const MAX_ROWS = 1_000;

/** Bytes kept of one result, counted as text. Bounds memory when rows are wide. */
export const MAX_RESULT_BYTES = 1_000_000;

/** Bytes kept of one cell. A row as a whole keeps at most MAX_RESULT_BYTES, so with more than 61 columns each cell's share is smaller. */
export const MAX_CELL_BYTES = 16_384;

/** Working memory of one statement: sorters, temporary tables, values. Counted from its start, so that it does not depend on what else is open. */
export const MAX_STATEMENT_BYTES = 64 * 1024 * 1024;

/** Working memory of SQLite for all connections together, beyond the limit above: an open database takes 140 KB, so 1,000 of them and a statement fit. Database files do not count. */
export const MAX_HEAP_BYTES = 512 * 1024 * 1024;

/** Characters of a LIKE or GLOB pattern; matching takes at most pattern × text steps, and is charged for those it takes. */
export const MAX_PATTERN_LENGTH = 100;

/** Page cache of one connection, in KiB. Small, since the file is in memory already. */
export const PAGE_CACHE_KIB = 128;

/** SELECTs in all views of a database together: compiling nested views takes native stack, which WebAssembly cannot check. */
export const MAX_VIEW_SELECTS = 300;

/** Tables and views of a database; their descriptions are read when it is opened. */
export const MAX_TABLES = 5_000;

/** Nesting of expressions. Deep nesting costs native stack while parsing. */
export const MAX_EXPRESSION_DEPTH = 100;

/** SELECTs joined by UNION, INTERSECT, EXCEPT; also bounds VALUES lists that are compiled row by row. */
export const MAX_COMPOUND_SELECTS = 50;

/** Columns of a table or result. The widest table of BIRD has 115. */
export const MAX_COLUMNS = 500;

/** Compiled program size, in instructions: stops queries that double in size with each nested name. The largest gold query of Spider has 132. */
export const MAX_PROGRAM = 5_000;

/** Arguments of one function call. */
export const MAX_FUNCTION_ARGUMENTS = 32;

/** Rows shown by SAMPLE. */
export const SAMPLE_ROWS = 5;
