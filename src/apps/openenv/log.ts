// The server's log: one record per event, one JSON object per line.

export interface LogRecord {
  readonly time: string;
  readonly level: "info" | "warning" | "error";
  readonly event: string;
  readonly [field: string]: unknown;
}

export type Log = (level: LogRecord["level"], event: string, fields?: Readonly<Record<string, unknown>>) => void;

/** A log that passes each record, with its time, to `write`. */
export function logTo(write: (record: LogRecord) => void): Log {
  return (level, event, fields = {}) => write({ time: new Date().toISOString(), level, event, ...fields });
}
