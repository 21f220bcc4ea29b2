/** `npm run deploy:generate`: writes deploy/ anew. What is there and is not generated any more is removed; `deploy/Dockerfile` and the like are left alone. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { deployFiles } from "./files.ts";

const root = join(import.meta.dirname, "..", "..");
const { version } = z.object({ version: z.string() }).parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));
const files = deployFiles(version);

for (const folder of ["crds", "control-plane", "pool-namespace", "connections", "keda", "helm"]) {
  for (const path of filesBelow(join(root, "deploy", folder), folder)) if (!files.has(path)) rmSync(join(root, "deploy", path));
}
for (const [path, text] of files) {
  const file = join(root, "deploy", path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
process.stdout.write(`${files.size} files in deploy/\n`);

function filesBelow(folder: string, name: string): readonly string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(name, entry.parentPath.slice(folder.length), entry.name));
  } catch {
    return []; // not made yet
  }
}
