/** Processes that start as those of a replacement do, and serve nobody: what the machine alone pays for a start. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const ROOT = join(import.meta.dirname, "..", "..");
const NODE_HELPER = join(ROOT, "src/embedded/nodes/helper-process.ts");
const ORDERS = join(ROOT, "examples/orders/orders.mjs");

/** A drifted node costs two starts: the new node's helper, then the new instance. Settles when the second one serves; ends them then. */
export async function startDecoys(ledgerUrl: string): Promise<void> {
  const helper = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", NODE_HELPER], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  try {
    await once(helper, "message");
    const env = { ...process.env, HOST: "127.0.0.1", PORT: "0", LEDGER_URL: ledgerUrl, RELEVO_INSTANCE: "decoy" };
    const orders = spawn(process.execPath, [ORDERS], { cwd: tmpdir(), stdio: ["ignore", "pipe", "inherit"], env });
    try {
      await once(createInterface({ input: orders.stdout }), "line");
    } finally {
      await end(orders);
    }
  } finally {
    await end(helper);
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}
