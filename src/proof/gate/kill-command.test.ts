import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../kernel/system.ts";
import { filled, killByCommand, uptimeMs } from "./kill-command.ts";

let server: Server | undefined;
afterEach(() => {
  server?.close();
  server = undefined;
});

async function aWorker(uptime: string): Promise<string> {
  const info = { nodeId: "w1", nodeVersion: { version: "483" }, environment: "lab", coordinator: false, starting: false, uptime };
  server = createServer((_request, response) => response.end(JSON.stringify(info))).listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const killer = (command: readonly string[]) => killByCommand({ command, restart: undefined, cwd: tmpdir(), clock: systemClock });
const node = (script: string) => [process.execPath, "-e", script];

test("the command is told which worker", () => {
  const worker = { nodeId: "w1", uri: "http://10.0.0.7:8081" };
  expect(filled(["kill", "$(worker.nodeId)", "$(worker.uri)", "$(worker.host):$(worker.port)", "$(worker.other)"], worker)).toEqual([
    "kill",
    "w1",
    "http://10.0.0.7:8081",
    "10.0.0.7:8081",
    "$(worker.other)",
  ]);
});

test("a command that fails is an error with what it said", async () => {
  const uri = "http://127.0.0.1:1";
  await expect(killer(node("console.error('no such worker'); process.exit(3)")).kill({ nodeId: "w1", uri })).rejects.toMatchObject({
    code: "gate_command_failed",
    found: "no such worker",
  });
  await expect(killer(["/no/such/program"]).kill({ nodeId: "w1", uri })).rejects.toMatchObject({ code: "gate_command_failed" });
});

test("a worker that still answers as the same process is not gone, whatever the command said", async () => {
  const worker = { nodeId: "w1", uri: await aWorker("3.00m") };
  const of = killer(node("0"));
  await of.kill(worker);
  expect(await of.isGone(worker)).toBe(false);
  await of.close();
});

test("one that began after the kill is another process", async () => {
  const worker = { nodeId: "w1", uri: await aWorker("0.01ms") };
  const of = killer(node("0"));
  await of.kill(worker);
  expect(await of.isGone(worker)).toBe(true);
  await of.close();
});

test("where nothing listens any more it is gone", async () => {
  const worker = { nodeId: "w1", uri: await aWorker("3.00m") };
  server?.close();
  const of = killer(node("0"));
  await of.kill(worker);
  expect(await of.isGone(worker)).toBe(true);
  await of.close();
});

test.each([
  ["57.66s", 57_660],
  ["1.50m", 90_000],
  ["2.00h", 7_200_000],
  ["123.00ms", 123],
  ["soon", undefined],
])("an uptime of %s", (text, ms) => {
  expect(uptimeMs(text)).toBe(ms);
});
