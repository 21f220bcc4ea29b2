/** Lists and streams of a real Redis. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { RedisServer } from "../../../test/redis/server.ts";
import type { DemandSource } from "../port.ts";
import { look, troubleOf, within } from "../testing/look.ts";
import { openSource } from "../testing/open-source.ts";
import { redisListAdapter } from "./list-adapter.ts";
import { COUNTED_MAX, redisStreamAdapter } from "./stream-adapter.ts";

let redis: RedisServer;
const open: DemandSource[] = [];

beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.stop());
afterEach(async () => {
  for (const source of open.splice(0)) await source.close();
  redis.signal("SIGCONT");
  await redis.command("FLUSHALL");
  await redis.command("ACL", "DELUSER", "reader");
});

const connection = (user?: string) => ({ name: "r", kind: "redis", url: redis.url(user) });
const kept = (source: DemandSource): DemandSource => {
  open.push(source);
  return source;
};
const listSource = (user?: string) =>
  kept(openSource(redisListAdapter, { kind: "redis-list", connection: "r", list: "jobs", processing: "busy" }, connection(user)));
const streamSource = (user?: string) =>
  kept(openSource(redisStreamAdapter, { kind: "redis-stream", connection: "r", stream: "s", group: "g" }, connection(user)));
const add = (id = "*") => redis.command("XADD", "s", id, "url", "x") as Promise<string>;
const deliver = (count: number) => redis.command("XREADGROUP", "GROUP", "g", "c", "COUNT", String(count), "STREAMS", "s", ">");

test("a list is as long as it is, with what is taken from it beside it; lists know no age (K1)", async () => {
  const source = listSource();
  const reading = { backlog: 0, inFlight: 0, oldestAgeMs: null, flow: "redis/jobs", valueAt: null, sourceNow: expect.any(Number) };
  expect(await look(source)).toEqual(reading);
  await redis.command("RPUSH", "jobs", "a", "b", "c");
  await redis.command("LMOVE", "jobs", "busy", "LEFT", "RIGHT");
  expect(await look(source)).toEqual({ ...reading, backlog: 2, inFlight: 1 });
  expect(await look(source, { flow: "redis/other" })).toMatch(/^other_flow: it is the backlog of redis\/jobs/);
});

test("a key of another type is no list, and no stream", async () => {
  await redis.command("SET", "jobs", "7");
  await redis.command("SET", "s", "7");
  expect(await look(listSource())).toMatch(/^type_changed: the key holds another type: WRONGTYPE/);
  expect(await troubleOf(streamSource())).toBe("type_changed");
});

test("of a stream's group: what it has not got, what it has not acknowledged, and the age of the first that it has not got", async () => {
  const source = streamSource();
  expect(await troubleOf(source)).toBe("missing");
  const now = Number(((await redis.command("TIME")) as string[])[0]) * 1_000;
  await add(`${now - 90_000}-0`);
  await add(`${now - 60_000}-5`);
  await add();
  expect(await look(source)).toBe("missing: the stream s has no group g");
  await redis.command("XGROUP", "CREATE", "s", "g", "0");
  expect(await look(source)).toMatchObject({ backlog: 3, inFlight: 0, flow: "redis/s/g", oldestAgeMs: expect.any(Number) });
  await deliver(1);
  const reading = await look(source);
  expect(reading).toMatchObject({ backlog: 2, inFlight: 1 });
  // By Redis's clock: the one of the controller is five minutes off in this test.
  const { oldestAgeMs = null } = reading as { oldestAgeMs?: number | null };
  expect(oldestAgeMs).toBeGreaterThanOrEqual(60_000);
  expect(oldestAgeMs).toBeLessThan(75_000);
  await deliver(10);
  expect(await look(source)).toMatchObject({ backlog: 0, inFlight: 3, oldestAgeMs: null });
});

test("an entry that was deleted before it was delivered: Redis knows no lag, so what is there is counted", async () => {
  await redis.command("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM");
  const ids = [await add(), await add(), await add()];
  await redis.command("XDEL", "s", ids[1] ?? "");
  expect(await look(streamSource())).toMatchObject({ backlog: 2, inFlight: 0 });
  for (let index = 0; index < COUNTED_MAX; index++) await add();
  expect(await troubleOf(streamSource())).toBe("partial");
});

test("ids that a producer numbered are no times", async () => {
  await redis.command("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM");
  await add("1-1");
  expect(await look(streamSource())).toMatchObject({ backlog: 1, oldestAgeMs: null });
});

test("a stream that was deleted and made again is missing until its group is there, and then what it is", async () => {
  const source = streamSource();
  await redis.command("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM");
  await add();
  await add();
  expect(await look(source)).toMatchObject({ backlog: 2 });
  await redis.command("DEL", "s");
  expect(await look(source)).toMatch(/^missing: there is no such key/);
  await add();
  expect(await troubleOf(source)).toBe("missing");
  await redis.command("XGROUP", "CREATE", "s", "g", "0");
  expect(await look(source)).toMatchObject({ backlog: 1 });
});

test("a server that was killed is unreachable, and read again when it is back", async () => {
  const list = listSource();
  const stream = streamSource();
  expect(await troubleOf(list)).toBe("valid");
  await redis.kill();
  expect(await troubleOf(list)).toBe("unreachable");
  expect(await troubleOf(stream)).toBe("unreachable");
  await redis.launch();
  await redis.command("RPUSH", "jobs", "a");
  expect(await look(list)).toMatchObject({ backlog: 1 });
  expect(await troubleOf(stream)).toBe("missing");
});

test("a server that does not answer holds nobody up, and the others neither", async () => {
  const source = listSource();
  expect(await troubleOf(source)).toBe("valid");
  redis.signal("SIGSTOP");
  expect(await troubleOf(source, {}, within(200))).toBe("unreachable");
  redis.signal("SIGCONT");
  expect(await troubleOf(source)).toBe("valid");
});

test("least privilege is enough, and less is refused by name (K8)", async () => {
  const rights = ["resetkeys", "-@all", "+llen", "+xinfo|groups", "+xrange", "+time"];
  await redis.command("ACL", "SETUSER", "reader", "on", ">pw", ...rights, "~jobs", "~busy", "~s");
  await redis.command("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM");
  await add();
  await redis.command("RPUSH", "jobs", "a");
  expect(await look(listSource("reader:pw"))).toMatchObject({ backlog: 1 });
  expect(await look(streamSource("reader:pw"))).toMatchObject({ backlog: 1, oldestAgeMs: expect.any(Number) });
  expect(await look(listSource("reader:wrong"))).toMatch(/^credentials_refused: Redis refuses our credentials: WRONGPASS/);
  await redis.command("ACL", "SETUSER", "reader", "-llen");
  expect(await look(listSource("reader:pw"))).toMatch(/^credentials_refused: the user of Redis may not do this: NOPERM/);
});

test("a server that demands a password, and is given none", async () => {
  const guarded = await RedisServer.start(["--requirepass", "secret-of-the-test"]);
  try {
    const spec = { kind: "redis-list", connection: "r", list: "jobs" } as const;
    const at = (url: string) => kept(openSource(redisListAdapter, spec, { name: "r", kind: "redis", url }));
    expect(await look(at(guarded.url()))).toMatch(/^credentials_refused: Redis demands credentials: NOAUTH/);
    expect(await look(at(guarded.url(":secret-of-the-test")))).toMatchObject({ backlog: 0, inFlight: null });
  } finally {
    await guarded.stop();
  }
});

test("over TLS the server is who its certificate says, by the authority that is configured", async () => {
  const folder = mkdtempSync(join(tmpdir(), "relevo-redis-"));
  const [key, certificate] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const subject = ["-subj", "/CN=redis.test", "-addext", "subjectAltName=DNS:redis.test"];
  execFileSync(
    "openssl",
    ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...subject, "-keyout", key, "-out", certificate],
    {
      stdio: "ignore",
    },
  );
  const files = ["--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate, "--tls-auth-clients", "no"];
  const secure = await RedisServer.start(files, "tls");
  try {
    const spec = { kind: "redis-list", connection: "r", list: "jobs" } as const;
    const at = (url: string, tls?: object) => kept(openSource(redisListAdapter, spec, { name: "r", kind: "redis", url, tls }));
    const good = { caFile: certificate, serverName: "redis.test" };
    expect(await look(at(secure.url(), good))).toMatchObject({ backlog: 0 });
    expect(await look(at(secure.url().replace("redis:", "rediss:"), good))).toMatchObject({ backlog: 0 });
    expect(await look(at(secure.url(), { ...good, serverName: "another.test" }))).toMatch(/^unreachable: .*another\.test/);
    expect(await look(at(secure.url(), { serverName: "redis.test" }))).toMatch(/^unreachable: .*self-signed/);
    expect(await troubleOf(at(secure.url()), {}, within(1_000))).toBe("unreachable");
  } finally {
    await secure.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
