import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LoadProcess, startLedgerProcess } from "./client-process.ts";
import { DEFAULT_MIX } from "./mix.ts";

test("load and ledger run as processes of their own and end when they are told", async () => {
  const folder = await mkdtemp(join(tmpdir(), "load-"));
  const ledger = await startLedgerProcess(join(folder, "ledger"));
  // Acknowledges without writing: everything that completes must come out as lost.
  const liar = createServer((_request, response) => response.writeHead(201).end());
  await new Promise<void>((resolve) => liar.listen(0, "127.0.0.1", resolve));
  const mix = { ...DEFAULT_MIX, perSecond: { order: 200, charge: 0, export: 0, live: 0, tx: 0 } };
  const url = `http://127.0.0.1:${(liar.address() as AddressInfo).port}`;
  const load = await LoadProcess.start({ url, http2Url: null, ledgerUrl: ledger.url, mix });

  await load.startAct("lies");
  await expect.poll(async () => (await load.snapshot()).outcomes.completed, { timeout: 10_000 }).toBeGreaterThan(10);
  await expect(load.startAct("another")).rejects.toMatchObject({ code: "act_running" });
  const { result } = await load.endAct("lies");
  await load.stop();

  expect(result.sent).toBeGreaterThan(10);
  expect(result.lost).toBe(result.sent);
  await expect(load.snapshot()).rejects.toMatchObject({ code: "load_client_gone" });
  await ledger.stop();
  liar.close().closeAllConnections();
  await rm(folder, { recursive: true });
});
