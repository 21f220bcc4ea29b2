/**
 * A process that commits without end and prints what was acknowledged: `SEQUENCE WAL_BYTES`, a line per commit. Commit n ends step n-1 and records step n and
 * its twin, so that half a commit would show. Arguments: file, pool (without a hyphen), lanes, most commits of a lane (it stays idle after them).
 */
import { statSync, writeSync } from "node:fs";
import type { Change } from "../../src/store/port.ts";
import { openStore } from "../../src/store/store.ts";

const [path = "", pool = "", lanes = "1", most = "1000000"] = process.argv.slice(2);
const store = await openStore({ path });
const authority = await store.claim(pool, `writer ${process.pid}`, 0);
setInterval(() => {}, 1_000_000); // stays until it is killed
await Promise.all(Array.from({ length: Number(lanes) }, (_, lane) => write(`${pool}.${lane}`)));

async function write(lane: string): Promise<void> {
  for (let number = 0; number < Number(most); number++) {
    const end: Change[] = number === 0 ? [] : [{ kind: "end_step", step: `s-${lane}-${number - 1}`, state: "done", outcome: "cordoned" }];
    await store.commit(authority, [...end, record(`s-${lane}-${number}`), record(`t-${lane}-${number}`)], number);
    writeSync(1, `${lane}-${number} ${statSync(`${path}-wal`).size}\n`);
  }
}

function record(id: string): Change {
  const reason = { code: "sealed", params: {} } as const;
  return { kind: "record_step", step: { id, operation: "op", pool, instance: null, kind: "cordon_node/1", payload: { node: id }, reason } };
}
