import type { Recording, Told } from "./case.ts";
import { CASES } from "./cases/all.ts";
import { runCase, type Server } from "./run-case.ts";

/** Each case in a namespace of its own, some at a time: most of a case is waiting for what does not come. */
const AT_ONCE = 16;

export async function runAll(server: Server): Promise<Recording> {
  const results = new Map<string, readonly Told[]>();
  const waiting = CASES.map((each, index) => ({ each, namespace: `case-${index}` }));
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
      results.set(next.each.name, await runCase(server, next.each, next.namespace));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return Object.fromEntries(CASES.map(({ name }) => [name, results.get(name) ?? []]));
}
