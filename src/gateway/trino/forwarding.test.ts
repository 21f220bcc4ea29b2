/** What a cluster is told of the way a request came, and what a result of many MB costs on its way back. */
import { connect as connectH2 } from "node:http2";
import { connect } from "node:net";
import { onTestFinished, expect, test } from "vitest";
import { systemClock } from "../../kernel/system.ts";
import { checkCounts, until } from "../testing/gateway.ts";
import { readTrinoHeaders } from "./request-headers.ts";
import { follow, post, sessionsAt, startFleet } from "./testing/fleet.ts";

test("the addresses in answers have the host and the port that the client used, the default port too", async () => {
  const { one, gateways } = await startFleet();
  const nextOf = async (headers: Record<string, string>) => new URL(String((await post(gateways[0], "rows 1", headers)).nextUri)).origin;

  expect(await nextOf({ host: "trino:8443" })).toBe("http://trino:8443");
  expect(await nextOf({ host: "trino" })).toBe("http://trino");
  expect(one.heads.at(-1)).toMatchObject({
    "x-forwarded-host": "trino",
    "x-forwarded-port": "80",
    "x-forwarded-proto": "http",
  });
  expect(await nextOf({ host: "trino", "x-forwarded-proto": "https", "x-forwarded-host": "sql.example.com" })).toBe(
    "https://sql.example.com",
  );
  expect(one.heads.at(-1)).toMatchObject({ "x-forwarded-port": "443" });
});

test("what the answer may be packed with is narrowed to what can be read", () => {
  const narrowed = (given: string) => {
    const headers = ["Accept-Encoding", given];
    readTrinoHeaders(headers);
    return headers[1];
  };
  expect(["zstd, gzip", "gzip;q=0.5, br", "GZIP", "br", "gzip;q=0", "gzip; q=0.0 , br", "*", "x-gzip"].map(narrowed)).toEqual([
    "gzip",
    "gzip",
    "gzip",
    "identity",
    "identity",
    "identity",
    "identity",
    "identity",
  ]);
});

test("a result of many MB is passed on as its client takes it, never held, and it is over when it went out whole", async () => {
  const { one, gateways } = await startFleet();
  const [gateway] = gateways;
  const first = await post(gateway, "big 64");
  const written = () => [...one.instance.sockets].reduce((sum, socket) => sum + socket.bytesWritten, 0);

  const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1", () =>
    socket.write(`GET ${new URL(String(first.nextUri)).pathname} HTTP/1.1\r\nHost: trino:8443\r\n\r\n`),
  );
  socket.pause();
  onTestFinished(() => void socket.destroy());
  let last = -1;
  await until("the cluster is held back", async () => {
    const now = written();
    const same = now > 1_000_000 && now === last;
    last = now;
    await systemClock.sleep(100);
    return same;
  });
  // What the kernels of both sides hold is a few MB on loopback.
  expect(last).toBeLessThan(24_000_000);
  expect(sessionsAt(gateway, "trino-1")).toBe(1);

  let taken = 0;
  let end = "";
  socket.on("data", (chunk: Buffer) => {
    taken += chunk.length;
    end = `${end}${chunk.toString("latin1", Math.max(0, chunk.length - 200))}`.slice(-200);
  });
  socket.resume();
  await until("it is over", () => sessionsAt(gateway, "trino-1") === 0, 15_000);
  await until("all of it came", () => end.endsWith("0\r\n\r\n"));
  expect(taken).toBeGreaterThan(63_000_000);
  checkCounts(gateway);
});

test("a last page that its client did not take whole leaves the query open, for it will be asked for again", async () => {
  const { gateways } = await startFleet();
  const first = await post(gateways[0], "big 64");
  const socket = connect(Number(new URL(gateways[0].url).port), "127.0.0.1", () =>
    socket.write(`GET ${new URL(String(first.nextUri)).pathname} HTTP/1.1\r\nHost: trino:8443\r\n\r\n`),
  );
  await new Promise((resolve) => socket.once("data", resolve));
  socket.destroy();
  await until("it is given up", () => gateways[0].core.ledger.of("trino").counts.inFlight === 0);

  expect(sessionsAt(gateways[0], "trino-1")).toBe(1);
  expect((await follow(gateways[0], first.nextUri)).status).toBe(200);
  expect(sessionsAt(gateways[0], "trino-1")).toBe(0);
});

test("clients of HTTP/2 are told the same", async () => {
  const { gateways } = await startFleet();
  const session = connectH2(gateways[0].url);
  onTestFinished(() => session.destroy());
  const ask = (headers: Record<string, string>, body?: string) =>
    new Promise<string>((resolve, reject) => {
      const stream = session.request({ ":authority": "trino:8443", ...headers }, { endStream: body === undefined });
      let text = "";
      stream.on("data", (chunk) => {
        text += chunk;
      });
      stream.on("error", reject);
      stream.on("close", () => resolve(text));
      if (body !== undefined) stream.end(body);
    });
  const nextOf = (text: string) => String((JSON.parse(text) as { readonly nextUri?: string }).nextUri);

  const first = nextOf(await ask({ ":method": "POST", ":path": "/v1/statement", "x-trino-user": "ann" }, "rows 1"));
  expect(first).toBe("http://trino:8443/v1/statement/queued/20261201_044100_00001_aaaaa/yb1c3/1");
  expect(sessionsAt(gateways[0], "trino-1")).toBe(1);
  expect(JSON.parse(await ask({ ":path": new URL(first).pathname }))).toMatchObject({ data: [[1]] });
  expect(sessionsAt(gateways[0], "trino-1")).toBe(0);
});
