#!/usr/bin/env node
// Takes the sources in a clone and the build in an installed package, and brings Node 24 where an older one runs.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import * as module from "node:module"; // as a whole: an old Node lacks some of its names
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const source = join(root, "src", "main.ts");
const main = existsSync(source) ? source : join(root, "dist", "main.js");

if (Number(process.versions.node.split(".")[0]) >= 24) {
  module.enableCompileCache?.();
  await import(pathToFileURL(main).href);
} else {
  runUnder(newerNode());
}

function newerNode() {
  const require = module.createRequire(join(root, "package.json"));
  for (const name of [`node-${process.platform}-${process.arch}`, `node-bin-${process.platform}-${process.arch}`]) {
    try {
      return join(dirname(require.resolve(`${name}/package.json`)), "bin", "node");
    } catch {
      // the next name
    }
  }
  process.stderr.write(`relevo: needs Node 24 or newer, found ${process.versions.node}; install it, or run npm start once in the clone\n`);
  process.exit(1);
}

function runUnder(node) {
  const child = spawn(node, [...process.execArgv, fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => {
    if (signal) process.kill(process.pid, signal);
    else process.exit(code ?? 1);
  });
}
