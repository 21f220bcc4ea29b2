import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { claimed, create, NOON, picture, POOL, recordStep } from "../../test/contracts/store-fixtures.ts";
import { judge, WriterProcess } from "../../test/contracts/store-writer-process.ts";
import { openStore } from "./store.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relevo-durability-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("no acknowledged commit is lost over twenty kills", async () => {
  const path = join(folder, "relevo.db");
  for (let kill = 0; kill < 20; kill++) {
    const writer = new WriterProcess(path, `shop/kill${kill}`, 1 + (kill % 8));
    await writer.until(1 + ((kill * 317) % 1_500));
    await writer.kill();
    const store = await openStore({ path });
    expect(await judge(store, `shop/kill${kill}`, writer.acknowledged)).toEqual({ lost: [], halfWritten: [] });
    await store.close();
  }
});

/** A disk of 2 MiB of its own (needs the right to mount). */
async function withSmallDisk(body: (mount: string) => Promise<void>): Promise<void> {
  execFileSync("/usr/bin/mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", folder]);
  try {
    await body(folder);
  } finally {
    execFileSync("/usr/bin/umount", ["-l", folder]);
  }
}

test("a disk that is full while a step is recorded refuses it as a whole, and takes it when there is space", async () => {
  await withSmallDisk(async (disk) => {
    const path = join(disk, "relevo.db");
    const store = await openStore({ path });
    const owner = await claimed(store);
    const filler = join(disk, "filler");
    await store.commit(owner, [create("i-0"), recordStep("s-0")], NOON);
    fillDisk(filler);

    const changes = (id: number) => [create(`i-${id}`), recordStep(`s-${id}`, { payload: { text: "y".repeat(50_000) } })] as const;
    let next = 1;
    for (; next < 100; next++) {
      const [result] = await Promise.allSettled([store.commit(owner, changes(next), NOON)]);
      if (result.status === "rejected") {
        expect(result.reason).toMatchObject({ code: "store_unavailable", class: "retryable" });
        break;
      }
    }
    expect(next).toBeLessThan(100);
    const full = await picture(store);
    const refused = await Promise.allSettled([store.commit(owner, changes(next), NOON), store.commit(owner, changes(next + 1), NOON)]);
    expect(refused.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(await picture(store)).toEqual(full);
    expect((await store.readPool(POOL))?.openSteps).toHaveLength(next);

    rmSync(filler);
    await store.commit(owner, changes(next), NOON);
    await store.close();

    const reopened = await openStore({ path });
    expect((await reopened.readPool(POOL))?.openSteps).toHaveLength(next + 1);
    expect((await reopened.readPool(POOL))?.instances).toHaveLength(next + 1);
    await reopened.close();
  });
});

test("a store cannot be begun on a full disk, and can when there is space", async () => {
  await withSmallDisk(async (disk) => {
    const filler = join(disk, "filler");
    fillDisk(filler);
    await expect(openStore({ path: join(disk, "relevo.db") })).rejects.toMatchObject({ code: "store_unavailable" });
    rmSync(filler);
    const store = await openStore({ path: join(disk, "relevo.db") });
    await claimed(store);
    await store.close();
  });
});

/** Writes until nothing more fits. */
function fillDisk(file: string): void {
  const block = Buffer.alloc(4096, 1);
  for (let blocks = 0; blocks < 1_000; blocks++) {
    try {
      writeFileSync(file, block, { flag: "a" });
    } catch {
      return;
    }
  }
  throw new Error("the disk never became full");
}
