/** `npm run build`: src/ → dist/ as JavaScript with declarations; files that are no TypeScript are copied as they are. */
import { spawnSync } from "node:child_process";
import { cpSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..", "..");
const dist = join(root, "dist");

rmSync(dist, { recursive: true, force: true });
const run = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" });
if (run.status !== 0) process.exit(run.status ?? 1);
cpSync(join(root, "src"), dist, { recursive: true, filter: (path) => statSync(path).isDirectory() || !path.endsWith(".ts") });
