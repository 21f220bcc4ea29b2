/**
 * The insides of pods of the embedded cluster: its volumes are folders in the pod's folder, its processes are processes here. Only where there is /proc.
 *
 * The server is the process that was told where its configuration is (`-Dconfig=`, `--etc-dir`), the latest one if several were: a launcher starts the server. Files
 * are then those of that folder; without such a process those of the pod's volumes.
 */
import { readdir, readFile, readlink, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Clock, Instant } from "../../kernel/clock.ts";
import type { PodFile, PodInside, PodLook, PodSight } from "./ports.ts";

const MOST_FOLDERS = 50;
const BYTES_MAX = 1024 * 1024;
const TICKS_PER_SECOND = 100;
/** Field 22 of /proc/PID/stat, counted after the name in parentheses, which may hold anything. */
const START_FIELD_AFTER_NAME = 19;

interface Process {
  readonly commandLine: readonly string[];
  readonly cwd: string;
  readonly startedAt: Instant | null;
}

/** `dir`: that of the cluster. */
export function embeddedSight(dir: string, clock: Clock): PodSight {
  return {
    blind: "the pod's folder is not there",
    async look({ uid }: PodLook): Promise<PodInside | null> {
      const folder = join(resolve(dir), "pods", uid);
      const volumes = await foldersIn(folder);
      if (volumes === null) return null;
      const server = serverAmong(await processesOf(folder, clock));
      const etc = server === undefined ? undefined : configFolderOf(server);
      return {
        commandLine: server?.commandLine ?? null,
        startedAt: server?.startedAt ?? null,
        readFile: (path) =>
          etc === undefined
            ? firstOf(
                volumes.map((volume) => join(folder, volume, path)),
                folder,
              )
            : read(join(etc, path), folder),
      };
    },
  };
}

async function foldersIn(folder: string): Promise<readonly string[] | null> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
      .slice(0, MOST_FOLDERS);
  } catch {
    return null;
  }
}

async function firstOf(paths: readonly string[], folder: string): Promise<PodFile | undefined> {
  for (const path of paths) {
    const found = await read(path, folder);
    if (found !== undefined) return found;
  }
  return undefined;
}

async function read(path: string, folder: string): Promise<PodFile | undefined> {
  try {
    const { mtimeMs, size } = await stat(path);
    if (size > BYTES_MAX) return undefined;
    const where = path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
    return { text: await readFile(path, "utf8"), changedAt: Math.ceil(mtimeMs), where: `${where} in the pod` };
  } catch {
    return undefined;
  }
}

/** Each container is told its pod's folder; what it starts inherits that. */
async function processesOf(folder: string, clock: Clock): Promise<readonly Process[]> {
  if (process.platform !== "linux") return [];
  const pids = (await readdir("/proc")).filter((entry) => /^\d+$/.test(entry));
  const found = await Promise.all(pids.map((pid) => processAt(pid, folder, clock)));
  return found.flatMap((each) => each ?? []);
}

async function processAt(pid: string, folder: string, clock: Clock): Promise<Process | undefined> {
  try {
    const environ = `\0${await readFile(`/proc/${pid}/environ`, "latin1")}\0`;
    if (!environ.includes(`\0POD_DIR=${folder}\0`)) return undefined;
    const commandLine = (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0").filter((word) => word !== "");
    return { commandLine, cwd: await readlink(`/proc/${pid}/cwd`), startedAt: await startOf(pid, clock) };
  } catch {
    return undefined; // another user's, or gone meanwhile
  }
}

async function startOf(pid: string, clock: Clock): Promise<Instant | null> {
  const line = await readFile(`/proc/${pid}/stat`, "latin1");
  const ticks = Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[START_FIELD_AFTER_NAME]);
  const upSeconds = Number((await readFile("/proc/uptime", "latin1")).split(" ")[0]);
  const ageMs = (upSeconds - ticks / TICKS_PER_SECOND) * 1_000;
  return Number.isFinite(ageMs) ? Math.floor(clock.now() - ageMs) : null;
}

function serverAmong(processes: readonly Process[]): Process | undefined {
  const configured = processes.filter((each) => configFolderOf(each) !== undefined);
  return configured.toSorted((a, b) => (b.startedAt ?? 0) - (a.startedAt ?? 0))[0];
}

function configFolderOf({ commandLine, cwd }: Process): string | undefined {
  for (const [index, word] of commandLine.entries()) {
    if (word.startsWith("-Dconfig=")) return dirname(resolve(cwd, word.slice("-Dconfig=".length)));
    const [, value] = /^--?etc-dir(?:=(.*))?$/.exec(word) ?? [];
    if (/^--?etc-dir/.test(word)) return resolve(cwd, value ?? commandLine[index + 1] ?? ".");
  }
  return undefined;
}
