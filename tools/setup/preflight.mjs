// What the tests against real programs need. Names what is missing and the Debian package that brings it, and fails: a tier never skips.
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** Command → Debian package. `.ci/run` installs from this list. */
const NEEDED = {
  kubectl: "kubernetes-client",
  haproxy: "haproxy",
  wrk: "wrk",
  h2load: "nghttp2-client",
  python3: "python3",
};

const PATH = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"];

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const missing = Object.entries(NEEDED).filter(([command]) => !PATH.some((folder) => folder !== "" && isExecutable(join(folder, command))));
if (process.argv.includes("--missing-packages")) {
  process.stdout.write(missing.map(([, debian]) => `${debian}\n`).join(""));
} else if (missing.length > 0) {
  for (const [command, debian] of missing) process.stderr.write(`missing: ${command} (Debian package ${debian})\n`);
  process.stderr.write(
    `the tests against real programs cannot run; install: apt-get install ${missing.map(([, debian]) => debian).join(" ")}\n`,
  );
  process.exitCode = 1;
}
