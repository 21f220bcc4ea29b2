/**
 * `npm run pack:check`: builds, packs and runs the package as a user gets it: no sources, no tests, and from the build `relevo --version` answers and a scenario runs.
 * The dependencies are those of the clone.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..", "..");
const scratch = mkdtempSync(join(tmpdir(), "relevo-pack-"));

function output(command: string, args: readonly string[], cwd: string): string {
  const run = spawnSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  if (run.status !== 0) throw new Error(`${command} ${args.join(" ")} failed (${run.status ?? run.signal})`);
  return run.stdout;
}

try {
  output(process.execPath, ["tools/build/build.ts"], root);
  const npm = process.env.npm_execpath;
  const pack = ["pack", "--json", "--ignore-scripts", "--pack-destination", scratch];
  const [packed] = JSON.parse(npm ? output(process.execPath, [npm, ...pack], root) : output("npm", pack, root)) as [
    { readonly filename: string; readonly size: number; readonly files: readonly { readonly path: string }[] },
  ];
  const paths = packed.files.map(({ path }) => path);
  const unwanted = paths.filter((path) => path.startsWith("src/") || /\.test\.(ts|js|d\.ts)$|\/testing\//.test(path));
  const wanted = [
    "LICENSE",
    "README.md",
    "bin/relevo.mjs",
    "dist/main.js",
    "dist/sdk/index.js",
    "dist/sdk/index.d.ts",
    "scenarios/my-pools.yaml",
    "docs/scenarios.md",
  ];
  const absent = wanted.filter((path) => !paths.includes(path));
  if (unwanted.length > 0 || absent.length > 0)
    throw new Error(`unwanted in the package: ${unwanted.join(", ")}; missing: ${absent.join(", ")}`);

  output("tar", ["-xzf", join(scratch, packed.filename), "-C", scratch], scratch);
  const home = join(scratch, "node_modules", "relevo");
  mkdirSync(join(scratch, "node_modules"));
  output("mv", [join(scratch, "package"), home], scratch);
  symlinkSync(join(root, "node_modules"), join(home, "node_modules"));
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { readonly version: string };
  const answered = output(process.execPath, [join(home, "bin", "relevo.mjs"), "--version"], scratch).trim();
  if (answered !== version) throw new Error(`relevo --version answered ${answered}, the package is ${version}`);
  output(process.execPath, [join(home, "bin", "relevo.mjs"), "simulate", "-f", join(home, "scenarios", "my-pools.yaml")], scratch);
  process.stdout.write(`package ok: ${paths.length} files, ${Math.round(packed.size / 1024)} KiB\n`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
