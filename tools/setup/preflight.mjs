// What the tests against real programs need. Names what is missing and the Debian package that brings it, and fails: a tier never skips.
import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Command → Debian package. `.ci/run` installs from this list. */
const NEEDED = {
  kubectl: "kubernetes-client",
  haproxy: "haproxy",
  wrk: "wrk",
  h2load: "nghttp2-client",
  python3: "python3",
  initdb: "postgresql",
  openssl: "openssl",
  promtool: "prometheus",
  chromium: "chromium",
  "redis-server": "redis-server",
};
/** Of 1.x: older ones lack `--subresource` and print other tables. Debian 12 has 1.20, Debian 13 a good one. */
const KUBECTL_MINOR = 27;

/** Debian keeps the server's programs out of the path, a folder for each version. */
const POSTGRES = "/usr/lib/postgresql";
const POSTGRES_FOLDERS = existsSync(POSTGRES) ? readdirSync(POSTGRES).map((version) => join(POSTGRES, version, "bin")) : [];

const PATH = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin", ...POSTGRES_FOLDERS].filter((folder) => folder !== "");

function isThere(command) {
  return PATH.some((folder) => {
    try {
      accessSync(join(folder, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Debian's python3 comes without it; moto (tools/peers/moto.sh) is installed into one. */
function hasVenv() {
  return spawnSync("python3", ["-c", "import venv, ensurepip"]).status === 0;
}

function oldKubectl() {
  const run = spawnSync("kubectl", ["version", "--client", "-o", "json"], { encoding: "utf8" });
  const minor = /"minor":\s*"(\d+)/.exec(run.stdout ?? "")?.[1];
  if (minor !== undefined && Number(minor) >= KUBECTL_MINOR) return undefined;
  return `kubectl is too old: found ${minor === undefined ? "no version" : `1.${minor}`}, needed 1.${KUBECTL_MINOR} (Debian 13's kubernetes-client, or the kubectl package of the Kubernetes project)`;
}

const missing = Object.entries(NEEDED).filter(([command]) => !isThere(command));
if (!hasVenv()) missing.push(["python3 -m venv", "python3-venv"]);
if (process.argv.includes("--missing-packages")) {
  process.stdout.write(missing.map(([, debian]) => `${debian}\n`).join(""));
} else {
  const problems = missing.map(([command, debian]) => `missing: ${command} (Debian package ${debian})`);
  const old = missing.some(([command]) => command === "kubectl") ? undefined : oldKubectl();
  if (old) problems.push(old);
  if (missing.length > 0) problems.push(`install: apt-get install ${missing.map(([, debian]) => debian).join(" ")}`);
  if (problems.length > 0) {
    process.stderr.write(`the tests against real programs cannot run\n${problems.map((problem) => `  ${problem}\n`).join("")}`);
    process.exitCode = 1;
  }
}
