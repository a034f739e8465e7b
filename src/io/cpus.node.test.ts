// CPU quotas of containers, from files like those of Linux.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { cpuQuota, usableCpus } from "./cpus.node.ts";

function systemWith(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "sqlenv-cpus-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

test("docker run --cpus 1, with control groups of both versions", () => {
  const v2 = systemWith({ "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "100000 100000\n" });
  expect([cpuQuota(v2), usableCpus(v2)]).toEqual([1, 1]);
  const v1 = systemWith({
    "proc/self/cgroup": "4:memory:/\n3:cpu,cpuacct:/\n0::/\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
  });
  expect([cpuQuota(v1), usableCpus(v1)]).toEqual([0.5, 1]);
});

test("the smallest quota of a group and its parents counts", () => {
  const root = systemWith({
    "proc/self/cgroup": "0::/system.slice/sqlenv.service\n",
    "sys/fs/cgroup/system.slice/cpu.max": "250000 100000\n",
    "sys/fs/cgroup/system.slice/sqlenv.service/cpu.max": "max 100000\n",
  });
  expect(cpuQuota(root)).toBe(2.5);
});

test("without a quota, or without such files, all processors count", () => {
  const none = systemWith({
    "proc/self/cgroup": "1:cpu:/\n0::/\n",
    "sys/fs/cgroup/cpu.max": "max 100000\n",
    "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
    "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
  });
  for (const root of [none, systemWith({})])
    expect([cpuQuota(root), usableCpus(root)]).toEqual([Number.POSITIVE_INFINITY, availableParallelism()]);
});
