// Installs what the clone needs, once. Plain JavaScript that runs on Node 20: it is what brings Node 24.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const modules = join(root, "node_modules");
const stamp = join(modules, ".relevo-setup");
const wanted = createHash("sha256").update(readFileSync(join(root, "package-lock.json"))).digest("hex");

const isInstalled = existsSync(stamp) && readFileSync(stamp, "utf8") === wanted;
if (!isInstalled) {
  install();
  linkNode();
  writeFileSync(stamp, wanted);
}

function install() {
  const npm = process.env.npm_execpath;
  const args = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
  process.stderr.write("relevo: installing dependencies (first use only)\n");
  // npm's own output goes to stderr: stdout belongs to the program that follows.
  const run = npm
    ? spawnSync(process.execPath, [npm, ...args], { cwd: root, stdio: ["ignore", 2, 2] })
    : spawnSync("npm", args, { cwd: root, stdio: ["ignore", 2, 2] });
  if (run.status !== 0) {
    process.stderr.write(`relevo: npm ci failed (${run.status ?? run.signal}); run it by hand to see why\n`);
    process.exit(1);
  }
}

/** npm 10 drops the link of `node` when the lock holds several platform packages with that bin, so it is made here. */
function linkNode() {
  if (Number(process.versions.node.split(".")[0]) >= 24) return;
  const bin = join(modules, ".bin", "node");
  if (existsSync(bin)) return;
  const candidates = [`node-${process.platform}-${process.arch}`, `node-bin-${process.platform}-${process.arch}`];
  const found = candidates.find((name) => existsSync(join(modules, name, "bin", "node")));
  if (!found) {
    process.stderr.write(`relevo: needs Node 24 or newer, found ${process.versions.node}, and npm has none for ${process.platform}-${process.arch}; install Node 24\n`);
    process.exit(1);
  }
  mkdirSync(dirname(bin), { recursive: true });
  rmSync(bin, { force: true });
  symlinkSync(join("..", found, "bin", "node"), bin);
}
