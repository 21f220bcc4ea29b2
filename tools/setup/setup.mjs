// Installs what the clone needs, once. Plain JavaScript that runs on Node 20: it is what brings Node 24.
// Everything is said on stderr: stdout belongs to the program that follows.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const modules = join(root, "node_modules");
const isOldNode = Number(process.versions.node.split(".")[0]) < 24;

if (!isInstalled()) install();
if (isOldNode) linkNode();

/** npm writes its own copy of the lock last, so an install that was cut short does not count. */
function isInstalled() {
  const seen = join(modules, ".package-lock.json");
  if (!existsSync(seen)) return false;
  const installed = JSON.parse(readFileSync(seen, "utf8")).packages;
  const wanted = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
  const isThere = ([path, entry]) =>
    !path.startsWith("node_modules/") || entry.optional || entry.link || installed[path]?.version === entry.version;
  return Object.entries(wanted).every(isThere) && (!isOldNode || newerNode() !== undefined);
}

function install() {
  const npm = process.env.npm_execpath;
  const args = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
  process.stderr.write("relevo: installing dependencies (first use only)\n");
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
  const bin = join(modules, ".bin", "node");
  if (existsSync(bin)) return;
  const found = newerNode();
  if (found === undefined) {
    process.stderr.write(
      `relevo: needs Node 24 or newer, found ${process.versions.node}, and npm has none for ${process.platform}-${process.arch}; install Node 24\n`,
    );
    process.exit(1);
  }
  mkdirSync(dirname(bin), { recursive: true });
  rmSync(bin, { force: true });
  symlinkSync(join("..", found, "bin", "node"), bin);
}

/** The package that brought Node 24, by its name in node_modules. */
function newerNode() {
  const names = [`node-${process.platform}-${process.arch}`, `node-bin-${process.platform}-${process.arch}`];
  return names.find((name) => existsSync(join(modules, name, "bin", "node")));
}
