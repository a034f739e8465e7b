// What untrusted SQL may use up. Every limit has its reason; all but the clock are deterministic.

/** One SQL text, in bytes. The longest gold query of Spider has 577, of BIRD about 1,300. */
export const MAX_SQL_BYTES = 10_000;

/** One string or blob anywhere inside the engine, at first: an instruction may copy or compare one. A statement that meets a longer one is run again with room for large values, and once more with room for huge ones. */
export const MAX_VALUE_BYTES = 16_384;

/** One large value, so that long stored texts can be sampled, cut and searched. */
export const MAX_LARGE_VALUE_BYTES = 131_072;

/** What each instruction counts for where values may be large: 100,000 rows can still be searched, and work on long values stays bounded. */
export const LARGE_VALUE_WEIGHT = 64;

/** One huge value; what is longer cannot be read, only counted and measured. */
export const MAX_HUGE_VALUE_BYTES = 1_000_000;

/** What each instruction counts for where values may be huge. */
export const HUGE_VALUE_WEIGHT = 256;

/** Virtual-machine instructions of one statement: about a second of work. The same statement always stops at the same instruction. */
export const MAX_INSTRUCTIONS = 30_000_000;

/** How often the engine asks whether to go on, in instructions; at 100 the asking costs nothing measurable. */
export const INSTRUCTIONS_PER_CHECK = 100;

/** Instructions and time of checking a whole file for damage, a multiple of what a statement may use. */
export const MAX_CHECK_INSTRUCTIONS = 300_000_000;
export const MAX_CHECK_MILLISECONDS = 50_000;

/** Backstop for what instructions do not measure. Hitting it depends on the machine, so such an episode is unscorable. */
export const MAX_MILLISECONDS = 5_000;

/** Rows kept of one result. More than a player can use; a result is cut here, and says so. */
export const MAX_ROWS = 1_000;

/** Bytes kept of one result, counted as text. Bounds memory when rows are wide. */
export const MAX_RESULT_BYTES = 1_000_000;

/** Bytes kept of one cell. A row as a whole keeps at most MAX_RESULT_BYTES, so with more than 61 columns each cell's share is smaller. */
export const MAX_CELL_BYTES = 16_384;

/** Working memory of one statement: sorters, temporary tables, values. Counted from its start, so that it does not depend on what else is open. */
export const MAX_STATEMENT_BYTES = 64 * 1024 * 1024;

/** Working memory of the engine for all connections together, behind the limit above: an open database takes 140 KB, so 1,000 of them and a statement fit. Database files do not count. */
export const MAX_HEAP_BYTES = 512 * 1024 * 1024;

/** Characters of a LIKE or GLOB pattern; matching takes at most the product of pattern and text, and is charged for the steps it takes. */
export const MAX_PATTERN_LENGTH = 100;

/** Page cache of one connection, in KiB. Small, since pages only copy the file's own bytes in memory. */
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

/** Compiled program size, in instructions: stops queries that double themselves through nested names. The largest gold of Spider has 132. */
export const MAX_PROGRAM = 5_000;

/** Arguments of one function call. */
export const MAX_FUNCTION_ARGUMENTS = 32;

/** Rows shown by SAMPLE. */
export const SAMPLE_ROWS = 5;
