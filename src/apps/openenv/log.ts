// What the server tells its keeper: one record an event, one JSON object a line.

export interface LogRecord {
  readonly time: string;
  readonly level: "info" | "warning" | "error";
  readonly event: string;
  readonly [field: string]: unknown;
}

export type Log = (level: LogRecord["level"], event: string, fields?: Readonly<Record<string, unknown>>) => void;

/** A log that hands each record, with the time, to `write`. */
export function logTo(write: (record: LogRecord) => void): Log {
  return (level, event, fields = {}) => write({ time: new Date().toISOString(), level, event, ...fields });
}
