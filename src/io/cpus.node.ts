// How many CPUs this process may use: those of the system, limited by the quota of its container. Node's own count ignores
// quotas before version 22.
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";

/** The number of useful threads; at least 1. `root` is the root of the system's files. */
export function usableCpus(root = "/"): number {
  return Math.max(1, Math.min(availableParallelism(), Math.ceil(cpuQuota(root))));
}

/** CPUs that control groups allow; infinite if there is no limit. */
export function cpuQuota(root = "/"): number {
  const groups = readText(root, "proc/self/cgroup").split("\n");
  const quotas = groups.flatMap((line) => {
    const [, controllers = "", path = "/"] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === "") return upwards(path).map((at) => quotaOfV2(root, at));
    if (!controllers.split(",").includes("cpu")) return [];
    return upwards(path).map((at) => quotaOfV1(root, controllers, at));
  });
  return Math.min(Number.POSITIVE_INFINITY, ...quotas);
}

/** A group and its parents: each may have a limit. Inside a container the outer ones are not visible. */
function upwards(path: string): string[] {
  const parts = path.split("/").filter((part) => part !== "" && part !== "..");
  return Array.from({ length: parts.length + 1 }, (_, i) => parts.slice(0, parts.length - i).join("/"));
}

/** `cpu.max` contains "quota period" or "max period", in microseconds. */
function quotaOfV2(root: string, group: string): number {
  const [quota, period] = readText(root, "sys/fs/cgroup", group, "cpu.max").trim().split(" ").map(Number);
  return ratio(quota, period);
}

function quotaOfV1(root: string, controllers: string, group: string): number {
  const read = (file: string) => readText(root, "sys/fs/cgroup", controllers, group, file).trim();
  return ratio(Number(read("cpu.cfs_quota_us") || Number.NaN), Number(read("cpu.cfs_period_us") || Number.NaN));
}

/** A quota of -1, "max" or none is no limit. */
function ratio(quota = Number.NaN, period = Number.NaN): number {
  return quota > 0 && period > 0 ? quota / period : Number.POSITIVE_INFINITY;
}

function readText(...path: string[]): string {
  try {
    return readFileSync(join(...path), "utf8");
  } catch {
    return ""; // not Linux, or another version of control groups
  }
}
