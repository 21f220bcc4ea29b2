/** Runs command lines against a controller that answers from a `FakeControlPlane`, without a socket. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FastifyInstance, InjectOptions } from "fastify";
import type { Clock } from "../../kernel/clock.ts";
import type { Ids } from "../../kernel/ids.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { createServer } from "../../server/app.ts";
import { createLogger } from "../../server/log.ts";
import { createMetrics } from "../../server/metrics.ts";
import { FakeControlPlane, NOON } from "../../server/testing/fake-control-plane.ts";
import type { CliContext } from "../context.ts";
import type { ProcessCommands } from "../process-commands.ts";
import { runProgram } from "../program.ts";

export interface CliRun {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface CliOptions {
  readonly fake?: FakeControlPlane;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly stdin?: string;
  readonly isTerminal?: boolean;
  readonly files?: Readonly<Record<string, string>>;
  /** Instead of the controller. */
  readonly fetch?: typeof fetch;
  /** Answers whatever is not the controller. */
  readonly admin?: typeof fetch;
  readonly processes?: Partial<ProcessCommands>;
  readonly alive?: readonly number[];
  /** Of the user's interrupt. */
  readonly signal?: AbortSignal;
  /** Told what is printed, as it is. */
  readonly onOut?: (text: string) => void;
  readonly webhookSecret?: string;
  /** Instead of one that stands still. */
  readonly clock?: Clock;
  /** Of the caller's clock, ahead of the controller's. */
  readonly clockAheadMs?: number;
}

export const SERVER = "http://127.0.0.1:7070";

export async function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliRun> {
  const cwd = mkdtempSync(join(tmpdir(), "relevo-cli-"));
  const told = { out: "", err: "" };
  let ids = 0;
  const counter: Ids = { next: (prefix) => `${prefix}-${++ids}` };
  const app = await aServer(options);
  try {
    for (const [name, text] of Object.entries(options.files ?? {})) writeFileSync(join(cwd, name), text);
    const context: CliContext = {
      out: (text) => {
        told.out += text;
        options.onOut?.(text);
      },
      err: (text) => void (told.err += text),
      isTerminal: options.isTerminal ?? false,
      columns: () => (options.isTerminal ? 80 : undefined),
      env: { RELEVO_SERVER: SERVER, ...options.env },
      cwd,
      user: "ann",
      clock: options.clock ?? new VirtualClock(NOON + (options.clockAheadMs ?? 0)),
      ids: counter,
      fetch: options.fetch ?? injecting(app, options.admin),
      isAlive: (pid) => options.alive?.includes(pid) ?? true,
      readStdin: async () => options.stdin ?? "",
      signal: options.signal ?? new AbortController().signal,
    };
    const none = () => Promise.reject(new Error("no process in this test"));
    const processes = {
      up: none,
      demo: none,
      controller: none,
      gateway: none,
      agent: none,
      cluster: none,
      queue: none,
      store: none,
      ...options.processes,
    };
    return { code: await runProgram(args, context, processes), ...told };
  } finally {
    await app.close();
    rmSync(cwd, { recursive: true, force: true });
  }
}

async function aServer({ fake = new FakeControlPlane(), webhookSecret }: CliOptions): Promise<FastifyInstance> {
  const clock = new VirtualClock(NOON);
  const log = createLogger({ level: "silent", name: "test", clock });
  const options = { host: "127.0.0.1", token: null, webhookSecret: webhookSecret ?? null, version: "0.0.0" };
  return createServer({ controlPlane: fake, metrics: createMetrics(), log, clock, options });
}

function injecting(app: FastifyInstance, admin: typeof fetch | undefined): typeof fetch {
  return async (input, init) => {
    const { pathname, search, host } = new URL(String(input));
    if (admin && !String(input).startsWith(SERVER)) return admin(input, init);
    const request: InjectOptions = {
      method: (init?.method ?? "GET") as "GET" | "POST",
      url: `${pathname}${search}`,
      headers: { ...(init?.headers as Record<string, string>), host },
      ...(init?.body === undefined || init.body === null ? {} : { payload: String(init.body) }),
    };
    const answer = await app.inject(request);
    return new Response(answer.statusCode === 204 ? null : answer.body, { status: answer.statusCode });
  };
}
