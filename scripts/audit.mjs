// Asks the registry for known vulnerabilities of the packages that users install: `npm run audit`. Fails for those rated
// high or critical. If the registry does not answer (no network, or a mirror without this service), it says so and passes.
import { spawnSync } from "node:child_process";

const flags = ["audit", "--omit=dev", "--audit-level=high", "--json"];
const { status, stdout, stderr } = spawnSync("npm", flags, { encoding: "utf8", shell: process.platform === "win32" });
const report = read(stdout);
if (report?.vulnerabilities === undefined) {
  const why = report?.message ?? report?.error?.summary ?? stderr.split("\n").find((line) => line.includes("error"));
  console.log(`npm audit: the registry gave no answer (${why || "no reason"}); nothing was checked`);
} else {
  const found = Object.values(report.vulnerabilities);
  for (const { name, severity, via } of found) {
    const titles = via.map((cause) => cause.title ?? `through ${cause}`);
    console.log(`${severity}: ${name}: ${titles.join("; ")}`);
  }
  console.log(`npm audit: ${report.metadata.dependencies.prod} packages, ${found.length} with known vulnerabilities`);
  if (status !== 0) process.exitCode = 1;
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
