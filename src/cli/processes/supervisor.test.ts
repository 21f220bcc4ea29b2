import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemClock } from "../../kernel/system.ts";
import { Supervisor } from "./supervisor.ts";

let dir: string;
let supervisor: Supervisor;
let deaths: string[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "relevo-supervisor-"));
  deaths = [];
  supervisor = new Supervisor({ clock: systemClock, logDir: join(dir, "logs"), onDeath: (_name, how) => deaths.push(how) });
});

afterEach(async () => {
  await supervisor.stop();
  rmSync(dir, { recursive: true, force: true });
});

test("a process that cannot even be started again is tried until it can: its log's folder was away for a while", async () => {
  await supervisor.start({ name: "gateway", args: () => gatewayArguments(dir) });
  const former = supervisor.pidOf("gateway") ?? 0;
  const restarted = supervisor.whenRestarted("gateway");

  rmSync(join(dir, "logs"), { recursive: true });
  process.kill(former, "SIGKILL");
  await vi.waitFor(() => expect(deaths.length).toBeGreaterThan(2), { timeout: 10_000 });
  mkdirSync(join(dir, "logs"));
  await restarted;

  expect(deaths.slice(0, 2)).toEqual(["SIGKILL", expect.stringContaining("ENOENT")]);
  expect(supervisor.pidOf("gateway")).not.toBe(former);
}, 30_000);

/** The process with the least needs: it waits for a controller that is not there. */
function gatewayArguments(folder: string): readonly string[] {
  const key = join(folder, "gateway.key");
  writeFileSync(key, "0123456789abcdef0123456789abcdef");
  return ["gateway", "--controller", "http://127.0.0.1:9", "--key-file", key, "--port", "0", "--admin-port", "0", "--log-level", "silent"];
}

test("a process that ends before it is ready is told with its last words", async () => {
  const absent = join(dir, "absent.key");

  await expect(
    supervisor.start({ name: "gateway", args: () => ["gateway", "--controller", "http://127.0.0.1:1", "--key-file", absent] }),
  ).rejects.toMatchObject({
    code: "process_did_not_start",
    found: `exit code 2: ${absent} cannot be read (file_unreadable); found: ENOENT`,
  });
}, 30_000);

test("of an error that nobody caught its sentence is told, not the version that Node prints below the stack", async () => {
  const broken = join(dir, "broken.mjs");
  writeFileSync(broken, 'throw new TypeError("the door is closed");');

  await expect(supervisor.start({ name: "gateway", args: () => ["gateway"], nodeFlags: ["--import", broken] })).rejects.toMatchObject({
    code: "process_did_not_start",
    found: "exit code 1: TypeError: the door is closed",
  });
}, 30_000);
