/** Where work of `careless.mjs` lands: it compares stamps as a database or a queue would, and says when each piece of work goes on. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { RelevoError } from "../../src/kernel/errors.ts";
import { createLanding, memoryEpochs, type Stamp } from "../../src/sdk/index.ts";

interface Result {
  readonly id: string;
  readonly stamp: Stamp | null;
  readonly instance: string;
  /** `landed`, or why not. */
  outcome: string;
}

export interface TestLanding {
  readonly url: string;
  readonly opened: { readonly stamp: Stamp; readonly instance: string }[];
  /** Work that has begun and waits; calling it lets it go on. */
  readonly begun: Map<string, { readonly instance: string; readonly stamp: Stamp | null; goOn(): void }>;
  readonly results: Result[];
  close(): void;
}

export async function startLanding(): Promise<TestLanding> {
  const landing = createLanding(memoryEpochs());
  const made = { opened: [], begun: new Map(), results: [] } as Pick<TestLanding, "opened" | "begun" | "results">;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text) as Result;
    const answer = (value: unknown): void => void response.end(JSON.stringify(value));
    if (request.url === "/open" && body.stamp !== null) {
      await landing.open(body.stamp);
      made.opened.push({ stamp: body.stamp, instance: body.instance });
      answer({});
    } else if (request.url === "/begun") {
      made.begun.set(body.id, { instance: body.instance, stamp: body.stamp, goOn: () => answer({}) });
    } else {
      const result = { ...body, outcome: await outcomeOf(landing, body.stamp) };
      made.results.push(result);
      answer(result);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { ...made, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** Without a stamp there is nothing to compare. */
async function outcomeOf(landing: ReturnType<typeof createLanding<undefined>>, stamp: Stamp | null): Promise<string> {
  if (stamp === null) return "landed";
  return landing.land(stamp, () => "landed").catch((error: unknown) => (error instanceof RelevoError ? error.code : String(error)));
}

/** One that is gone gets none. */
export function signal(pid: number, name: "SIGSTOP" | "SIGCONT"): void {
  try {
    process.kill(pid, name);
  } catch {
    // Said above.
  }
}
