/** `relevo verify disruption orders -o json`, as a user calls it. */
import type { CliContext } from "../../src/cli/context.ts";
import { runProgram } from "../../src/cli/program.ts";
import { systemClock, systemIds } from "../../src/kernel/system.ts";

export interface VerifyReport {
  readonly level: string;
  readonly verdict: string;
  readonly nothingShown: readonly string[];
  readonly claims: readonly { readonly claim: string; readonly held: boolean; readonly found: string }[];
  readonly pods: readonly { readonly owners: readonly string[] }[];
  readonly replaced: { readonly client: { readonly failed: number }; readonly replacements: readonly string[] } | null;
}

export async function verifyOrders(
  server: string,
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly err: string; readonly report: VerifyReport }> {
  const told = { out: "", err: "" };
  const context: CliContext = {
    out: (text) => void (told.out += text),
    err: (text) => void (told.err += text),
    isTerminal: false,
    columns: () => undefined,
    env: { RELEVO_SERVER: server },
    cwd: "/nonexistent",
    user: "test",
    clock: systemClock,
    ids: systemIds,
    fetch,
    isAlive: () => true,
    readStdin: async () => "",
    signal: new AbortController().signal,
  };
  const none = () => Promise.reject(new Error("no process in this test"));
  const processes = { up: none, demo: none, controller: none, gateway: none, agent: none, cluster: none, queue: none, store: none };
  const code = await runProgram(["verify", "disruption", "orders", "-o", "json", ...args], context, processes);
  return { code, err: told.err, report: JSON.parse(told.out || "null") as VerifyReport };
}
