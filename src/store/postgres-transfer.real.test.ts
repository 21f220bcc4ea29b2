import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { seed } from "../../test/interleavings/calls.ts";
import { create, NOON, picture, POOL } from "../../test/contracts/store-fixtures.ts";
import { PostgresCluster } from "../../test/postgres/cluster.ts";
import { openStore } from "./store.ts";
import { filling } from "./transfer-access.ts";

const run = promisify(execFile);
const RELEVO = join(import.meta.dirname, "../main.ts");

let cluster: PostgresCluster;
let folder = "";
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "relevo-moves-"));
  cluster = await PostgresCluster.start();
});
afterAll(async () => {
  await cluster?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function relevo(...args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  try {
    const { stdout, stderr } = await run(process.execPath, [RELEVO, ...args], { cwd: folder });
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, out: stdout, err: stderr };
  }
}

async function pictureOf(store: string): Promise<unknown> {
  const opened = await openStore(store);
  try {
    return [
      await picture(opened),
      await picture(opened, "shop/other"),
      await opened.readEra(),
      await opened.listNotices(10),
      await opened.listGateways(),
    ];
  } finally {
    await opened.close();
  }
}

test("a store moves from a file to PostgreSQL and back with everything, the key of the lease tokens too", async () => {
  const file = join(folder, "first.db");
  const store = await openStore(file);
  await seed(store);
  await store.recover({ above: 4, at: NOON, why: "test", by: "me" });
  await store.saveNotice({
    ...{ id: "n-nul", source: "webhook", dedupeKey: "k", receivedAt: NOON, body: "a\0b\u2028c", outcome: "malformed" },
    ...{ machineIds: [], deadline: null, reason: null },
  });
  await store.close();
  writeFileSync(`${file}.lease-key`, `${"k".repeat(43)}\n`);
  expect(await relevo("store", "export", "--store", file, "--file", "none/out.jsonl")).toMatchObject({
    code: 1,
    err: expect.stringContaining("export_unwritable"),
  });
  const before = JSON.stringify(await pictureOf(file)).replace("a\\u0000b", "a\uFFFDb"); // PostgreSQL's text holds no NUL

  expect(await relevo("store", "export", "--store", file, "--file", "out.jsonl")).toMatchObject({ code: 0, out: "" });
  expect(statSync(join(folder, "out.jsonl")).mode & 0o777).toBe(0o600);
  const url = cluster.url("moved");
  expect(await relevo("store", "migrate", "--store", url, "--dry-run")).toMatchObject({
    code: 0,
    out: expect.stringContaining("would be migrated: schema 0 to"),
  });
  expect(await relevo("store", "import", "--store", url, "--file", "out.jsonl", "--dry-run", "-o", "json")).toMatchObject({ code: 0 });
  expect(await relevo("store", "import", "--store", url, "--file", "out.jsonl")).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^\d+ rows were taken/),
  });
  expect(JSON.stringify(await pictureOf(url))).toBe(before);
  expect(await relevo("store", "import", "--store", url, "--file", "out.jsonl")).toMatchObject({
    code: 1,
    err: expect.stringContaining("store_not_empty"),
  });
  expect(await relevo("store", "migrate", "--store", url)).toMatchObject({ code: 0, out: expect.stringContaining("is up to date") });

  const moved = await openStore(url);
  expect(await moved.sharedSecret("lease-key", "another")).toBe("k".repeat(43));
  // What counts goes on after what is there.
  const owner = await moved.claim(POOL, "next", NOON);
  await moved.commit(owner, [create("i-next")], NOON);
  expect((await moved.readPool(POOL))?.instances.at(-1)?.id).toBe("i-next");
  await moved.close();

  const after = JSON.stringify(await pictureOf(url));
  expect(await relevo("store", "export", "--store", url, "--file", "back.jsonl")).toMatchObject({ code: 0 });
  expect(await relevo("store", "import", "--store", "second.db", "--file", "back.jsonl")).toMatchObject({ code: 0 });
  expect(JSON.stringify(await pictureOf(join(folder, "second.db")))).toBe(after);
  expect(readFileSync(join(folder, "second.db.lease-key"), "utf8").trim()).toBe("k".repeat(43));
});

test("what cannot be read is said, and fills nothing", async () => {
  expect(await relevo("store", "import", "--store", "third.db", "--file", ".")).toMatchObject({
    code: 2,
    err: expect.stringContaining("import_unreadable"),
  });
});

test("when the answer to the COMMIT of an import is lost, it is said that nobody knows", async () => {
  const url = cluster.url("unanswered");
  const filled = filling({ store: url }, false, async (access) => {
    const [row] = await access.query("select pg_backend_pid() as pid", []);
    const admin = new pg.Client({ host: "127.0.0.1", port: cluster.port, user: "relevo", database: "postgres" });
    await admin.connect();
    await admin.query("select pg_terminate_backend($1)", [row?.["pid"]]);
    await admin.end();
  });
  await expect(filled).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("did not say whether it kept the change"),
  });
});

test("a password in the URL of a command is refused before anything is tried, and is not printed", async () => {
  const refused = await relevo("store", "migrate", "--store", cluster.url("secret").replace("relevo@", "relevo:hunter2@"));
  expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("store_password_shown") });
  expect(refused.err + refused.out).not.toContain("hunter2");
});
