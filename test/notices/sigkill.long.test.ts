/** The process that receives is killed at any moment: what it had in hand comes again, and nothing that was deleted is missing in the store. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { integerBetween } from "../../src/kernel/random.ts";
import { systemClock, systemRandom } from "../../src/kernel/system.ts";
import { startSqsStandIn } from "../../src/notices/testing/sqs-server.ts";
import { openStore } from "../../src/store/store.ts";
import { messageOf, Taker } from "./taking.ts";

const NODES = 200;
const KILLS = 20;
const PER_KILL = 100;

test("killed twenty times while it receives, no message is lost, and none is two notices (S1)", async () => {
  const folder = mkdtempSync(join(tmpdir(), "relevo-notices-"));
  const sqs = await startSqsStandIn();
  try {
    const queue = sqs.queue("kills");
    const setting = { store: join(folder, "store.db"), queue: queue.url, nodes: 2 * NODES, visibilitySeconds: 2 };
    for (let kill = 0; kill < KILLS; kill++) {
      const taker = await Taker.start(setting);
      queue.send(...Array.from({ length: PER_KILL }, (_, index) => messageOf(kill * PER_KILL + index, NODES)));
      await systemClock.sleep(integerBetween(systemRandom, 10, 400));
      await taker.kill();
    }
    const taker = await Taker.start(setting);
    await expect.poll(() => queue.messages().length, { timeout: 120_000 }).toBe(0);
    await taker.end();

    const store = await openStore({ path: setting.store });
    const keys = (await store.listNotices(2 * KILLS * PER_KILL)).map(({ dedupeKey }) => dedupeKey);
    await store.close();
    expect(keys.toSorted()).toEqual(Array.from({ length: KILLS * PER_KILL }, (_, number) => `event-${number}`).toSorted());
  } finally {
    await sqs.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
