// When, where and with which command a benchmark was measured; part of the results that docs/results/bench stores.
import { cpus, loadavg, totalmem } from "node:os";
import { basename } from "node:path";

export interface Measurement {
  /** Day, in UTC. */
  readonly date: string;
  readonly command: string;
  readonly machine: { readonly cpu: string; readonly cores: number; readonly memory_gb: number };
  readonly node: string;
  /** Load average before it: near 0 on a quiet machine. */
  readonly load: number;
}

/** Options whose value is a path of this machine, which says nothing elsewhere. */
const LOCAL_PATHS = ["--peer"];

/** Describes a measurement that begins now. @default args: those of this process */
export function measurementNow(args: readonly string[] = process.argv.slice(2)): Measurement {
  const words = args.map((word, i) => (LOCAL_PATHS.includes(args[i - 1] ?? "") ? basename(word) : word));
  return {
    date: new Date().toISOString().slice(0, 10),
    command: ["sqlenv", ...words].join(" "),
    machine: { cpu: cpus()[0]?.model ?? "unknown", cores: cpus().length, memory_gb: Math.round(totalmem() / 2 ** 30) },
    node: process.version,
    load: Number(loadavg()[0]!.toFixed(2)),
  };
}
