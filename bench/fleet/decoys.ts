/** Processes that start as those of a replacement do, and serve nobody: what the machine alone pays for a start. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MachineProcess } from "../../src/embedded/nodes/machine-process.ts";
import { systemClock } from "../../src/kernel/system.ts";

const ORDERS = join(import.meta.dirname, "..", "..", "examples/orders/orders.mjs");
const MAX_LOG_BYTES = 1024 * 1024;
const LOOK_EVERY_MS = 20;

/** A drifted node costs two starts: the new node's helper, then the new instance. Settles when the second one serves; ends them then. */
export async function startDecoys(ledgerUrl: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "relevo-decoy-"));
  const env = Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
  const machine = new MachineProcess("decoy", env, () => undefined);
  try {
    await machine.ready;
    const logPath = join(folder, "log");
    await machine.start(
      {
        id: "decoy",
        file: process.execPath,
        args: [ORDERS],
        cwd: folder,
        env: { ...env, HOST: "127.0.0.1", PORT: "0", LEDGER_URL: ledgerUrl, RELEVO_INSTANCE: "decoy" },
        logPath,
        maxLogBytes: MAX_LOG_BYTES,
      },
      () => undefined,
    );
    await untilSaid(logPath, "orders serves");
  } finally {
    machine.kill();
    await machine.gone;
    await rm(folder, { recursive: true, force: true });
  }
}

async function untilSaid(logPath: string, text: string): Promise<void> {
  while (!(await readFile(logPath, "utf8")).includes(text)) await systemClock.sleep(LOOK_EVERY_MS);
}
