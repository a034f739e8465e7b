// Names of processes: which process wrote a file or folder, and whether it still runs.
import { hostname } from "node:os";

/** This process in a file's name: machine, process id. */
export function processName(): string {
  return `${hostname()
    .replace(/[^\w-]/g, "_")
    .slice(0, 40)}.${process.pid}`;
}

/** Whether the process with a name that `processName` gave has ended; another machine's counts as running. */
export function hasEnded(name: string): boolean {
  const [host, id] = [name.slice(0, name.lastIndexOf(".")), Number(name.slice(name.lastIndexOf(".") + 1))];
  if (!processName().startsWith(`${host}.`) || id === process.pid || !Number.isInteger(id) || id < 1) return false;
  return !isAlive(id);
}

/** Whether this machine has such a process; signal 0 only checks. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"; // it exists and belongs to another user
  }
}
