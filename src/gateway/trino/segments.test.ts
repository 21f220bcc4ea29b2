/** Spooled segments: their addresses carry no query id, so each leaves with a signed token. */
import { expect, test } from "vitest";
import { checkCounts } from "../testing/gateway.ts";
import { signSegments } from "./segments.ts";
import { follow, type Page, post, sessionsAt, startFleet } from "./testing/fleet.ts";

interface Segments {
  readonly segments: readonly { readonly uri?: string; readonly ackUri?: string; readonly data?: string }[];
}

const segmentsOf = (page: Page) => (page.data as Segments).segments;

for (const gzip of [false, true])
  test(`a segment is fetched and acknowledged at its cluster through any replica, also while it drains (packed: ${gzip})`, async () => {
    const { one, two, gateways, apply } = await startFleet({}, { gzip });
    const first = await post(gateways[0], "spool");
    const page = await follow(gateways[0], first.nextUri, "GET", gzip ? { "accept-encoding": "gzip" } : {});
    await apply([one.member({ state: "draining" }), two.member()]);
    const [inline, spooled, stored] = segmentsOf(page);

    expect(inline?.data).toBe("W1sxXV0=");
    expect(spooled?.uri).toMatch(/^http:\/\/trino:8443\/v1\/spooled\/download\/s1\?relevo=v1\./);
    expect(stored?.uri).toBe("http://storage:9000/v1/spooled/download/s2?X-Amz-Signature=1");
    expect(sessionsAt(gateways[0], "trino-1")).toBe(2);

    const fetched = await follow(gateways[1], spooled?.uri);
    const acked = [await follow(gateways[0], spooled?.ackUri), await follow(gateways[0], stored?.ackUri)];

    expect([fetched.status, fetched.text, fetched.headers["relevo-instance"]]).toEqual([200, "rows of a segment", "trino-1"]);
    expect(acked.map((page) => page.status)).toEqual([200, 200]);
    expect(one.paths.slice(-3)).toEqual(["/v1/spooled/download/s1", "/v1/spooled/ack/s1", "/v1/spooled/ack/s2"]);
    expect(sessionsAt(gateways[0], "trino-1")).toBe(0);
    for (const gateway of gateways) checkCounts(gateway);
  });

test("an address without a token, with a forged one, or of a cluster that is gone is refused with its code", async () => {
  const { one, two, gateways, apply } = await startFleet();
  const page = await follow(gateways[0], (await post(gateways[0], "spool")).nextUri);
  const uri = String(segmentsOf(page)[1]?.uri);
  const codeOf = async (address: string) => {
    const { status, headers } = await follow(gateways[1], address);
    return [status, headers["relevo-rejected"]];
  };

  expect(await codeOf("http://trino:8443/v1/spooled/download/s1")).toEqual([403, "segment_unknown"]);
  expect(await codeOf(`${uri.slice(0, -4)}AAAA`)).toEqual([403, "segment_unknown"]);
  await apply([one.member({ state: "sealed" }), two.member()]);
  expect(await codeOf(uri)).toEqual([410, "segment_lost"]);
  expect(two.paths).toEqual([]);
});

test("of a page only the addresses that lead here change, whatever its rows hold, and many are changed at once", () => {
  const base = "http://trino:8443";
  const segment = (index: number) => ({
    type: "spooled",
    uri: `${base}/v1/spooled/download/${index}`,
    ackUri: `${base}/v1/spooled/ack/${index}`,
  });
  const trap = { type: "inline", data: `"uri":"${base}/v1/spooled/download/0"` };
  const data = { encoding: "json", segments: [trap, ...Array.from({ length: 5_000 }, (_, index) => segment(index))] };
  const page = JSON.stringify({ id: "q", data, stats: { processedBytes: 1 } }).replace(
    '"processedBytes":1',
    '"processedBytes":9223372036854775807',
  );
  let count = 0;

  const changed = signSegments(Buffer.from(page), base, () => `t${count++}`)?.toString() ?? "";

  expect(count).toBe(5_000);
  const expected = page.replaceAll(
    /\/v1\/spooled\/(?:download|ack)\/(\d+)"(?=[,}])/g,
    (whole, index: string) => `${whole.slice(0, -1)}?relevo=t${index}"`,
  );
  expect(changed).toBe(expected);
  expect(changed).toContain('"processedBytes":9223372036854775807');
});

test("a page without such addresses, or that is no page, is left alone", () => {
  const sign = () => "t";
  for (const text of ['{"data":{"segments":[{"type":"spooled","uri":"http://storage/v1/spooled/x"}]}}', '{"data":[[1]]}', "{", "null"])
    expect(signSegments(Buffer.from(text), "http://trino:8443", sign)).toBeUndefined();
});
