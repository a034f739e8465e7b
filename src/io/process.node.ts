// Processes by name: who wrote a file or folder, and whether that process still runs.
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

/** Whether there is such a process on this machine; signal 0 only asks. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"; // there is, and it is somebody else's
  }
}
