import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { type RunFile, writeRunFile } from "./run-file.ts";
import { findRunning } from "./running-here.ts";

const RUN: RunFile = {
  controllerUrl: "http://127.0.0.1:7070",
  token: null,
  webhookSecret: null,
  gatewayUrl: "http://127.0.0.1:8080",
  clusterUrl: null,
  adminUrl: null,
  kubeconfig: "/none",
  pids: { up: 11, controller: 12, gateway: 13, cluster: null },
};

let cwd: string;

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "relevo-running-"));
});

afterEach(() => rmSync(cwd, { recursive: true, force: true }));

const found = (isAlive: boolean, answer: () => Promise<Response>) =>
  findRunning({ cwd, isAlive: () => isAlive, fetch: answer, clock: new VirtualClock(0) });
const answers = async () => new Response("{}");
const refuses = () => Promise.reject(new TypeError("fetch failed"));

test("one runs here when its process lives and its controller answers", async () => {
  writeRunFile(cwd, RUN);

  expect(await found(true, answers)).toEqual(RUN);
});

test("none runs where there is no run file, where its process is gone, or where another process has its number", async () => {
  const without = await found(true, answers);
  writeRunFile(cwd, RUN);

  expect([without, await found(false, answers), await found(true, refuses)]).toEqual([undefined, undefined, undefined]);
});
