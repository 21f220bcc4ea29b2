/** `relevo token, release, seal, unfreeze, bundle`. */
import { expect, test } from "vitest";
import { parse } from "yaml";
import { tokenHashOf } from "../server/access.ts";
import { aPool, anInstance, FakeControlPlane, NOON, someEvidence } from "../server/testing/fake-control-plane.ts";
import { RelevoError } from "../kernel/errors.ts";
import { redactor } from "./redact.ts";
import { runCli, SERVER } from "./testing/run-cli.ts";

const HOUR = 3_600_000;
const HELD = {
  id: "cordon/u/ev-1",
  operation: "replace/orders-a",
  pool: "default/orders",
  instance: "orders-a",
  kind: "cordon_node/1",
  payload: { secret: "in-a-payload" },
  reason: { code: "nothing_to_do", params: {} },
  state: "held",
  attempts: 5,
  notBefore: NOON,
  recordedAt: NOON,
  endedAt: null,
  outcome: "step_payload_invalid",
  result: null,
  authorityEpoch: "0.1",
} as never;

test("a token is told once with its line; another call makes another one", async () => {
  const first = await runCli(["token", "create", "--name", "vera", "--role", "viewer", "-o", "json"]);
  const second = await runCli(["token", "create", "--name", "vera", "--role", "viewer"]);
  const { token, entry } = JSON.parse(first.out) as { token: string; entry: object };

  expect([first.code, entry]).toEqual([0, { name: "vera", role: "viewer", tokenHash: tokenHashOf(token) }]);
  expect(token).toMatch(/^[\w-]{43}$/);
  const [, other = "", line = ""] = /once:\n(\S+)\n\nfor the controller's --token-file:\n([\s\S]*)$/.exec(second.out) ?? [];
  expect([other === token, parse(line)]).toEqual([false, [{ name: "vera", role: "viewer", tokenHash: tokenHashOf(other) }]]);
  expect((await runCli(["token", "create", "--name", "x", "--role", "root"])).code).toBe(2);
});

test("the token of a file is read at each call", async () => {
  const sent: (string | null)[] = [];
  const fetched: typeof fetch = async (_input, init) => {
    sent.push(new Headers(init?.headers).get("authorization"));
    return new Response(JSON.stringify({ items: [] }));
  };
  const files = { token: "from-a-file\n" };
  await runCli(["get", "pools"], { files, env: { RELEVO_SERVER: SERVER, RELEVO_TOKEN_FILE: "token" }, fetch: fetched });
  const missing = await runCli(["get", "pools"], { env: { RELEVO_SERVER: SERVER, RELEVO_TOKEN_FILE: "none" }, fetch: fetched });

  expect(sent).toEqual(["Bearer from-a-file"]);
  expect([missing.code, missing.err]).toEqual([1, expect.stringContaining("token_unreadable")]);
});

test("release names the steps that it ended; where nothing is held it is refused", async () => {
  const fake = new FakeControlPlane({ pools: [aPool()], steps: [HELD] });
  expect(await runCli(["release", "replace/orders-a", "--reason", "looked at it"], { fake })).toEqual({
    code: 0,
    err: "",
    out: "released: cordon/u/ev-1; what is to be done is decided anew from what is seen now\n",
  });
  expect(fake.calls).toEqual([{ call: "release", with: { operation: "replace/orders-a", why: "looked at it", by: "ann" } }]);
  expect((await runCli(["release", "replace/other", "--reason", "x"], { fake })).code).toBe(3);
  expect((await runCli(["release", "replace/other"], { fake })).code).toBe(2);
});

test("seal wants --force and a reason, and says what was given up", async () => {
  const fake = new FakeControlPlane({ pools: [aPool()] });
  const run = await runCli(["seal", "orders-a", "--force", "--reason", "its work is void", "--until", "2h"], { fake });

  expect(run).toEqual({
    code: 0,
    err: "",
    out: "orders-a is sealed with 2 requests and sessions given up: counted as forced, outside the zero-loss claim; doctor names it until it is gone and 2030-01-01T14:00:00.000Z is over\n",
  });
  expect(fake.calls).toEqual([
    { call: "forceSeal", with: { instance: "orders-a", why: "its work is void", by: "ann", until: NOON + 2 * HOUR } },
  ]);
  expect((await runCli(["seal", "orders-a", "--reason", "x"], { fake })).code).toBe(2);
  expect((await runCli(["seal", "orders-a", "--force", "--reason", "x", "--until", "200d"], { fake })).code).toBe(2);
  expect(fake.calls.length).toBe(1);
});

test("doctor names a forced seal until it is closed", async () => {
  const forced = {
    pool: "default/orders",
    instance: "orders-a",
    at: NOON,
    phase: "sealed",
    by: "ann",
    why: "void",
    until: NOON + HOUR,
    obligations: null,
  } as const;
  const { out } = await runCli(["doctor"], { fake: new FakeControlPlane({ pools: [aPool()], forcedSeals: [forced] }) });
  expect(out).toContain(
    "warning  forced seal: orders-a of default/orders (sealed) by ann: void; unknown requests and sessions were given up; look after what was lost; it is named until the instance is gone and 2030-01-01T13:00:00.000Z is over\n",
  );
});

test("unfreeze that leaves a ConfigMap's freeze says so, and ends as held", async () => {
  const freeze = { until: NOON + HOUR, why: "a migration", by: "ConfigMap default/relevo-freeze" };
  const run = await runCli(["unfreeze", "orders"], { fake: new FakeControlPlane({ pools: [aPool({ freeze })] }) });
  expect([run.code, run.out]).toEqual([4, "decides again: no pool\n"]);
  expect(run.err).toContain("delete or change ConfigMap default/relevo-freeze");
});

/** A document with everything that must not leave the site. */
function secretiveFleet(): FakeControlPlane {
  const state = aPool();
  const env = [
    { name: "DB_PASSWORD", value: "env-value-hunter2" },
    { name: "PLAIN", value: "env-value-plain" },
  ];
  const secret = { kind: "Secret", stringData: { key: "secret-data-hunter2" } };
  const spec = { ...state.document.spec, blueprint: [{ kind: "Deployment", spec: { containers: [{ env }] } }, secret] };
  const document = { ...state.document, spec } as never;
  const notice = {
    id: "n-1",
    source: "eventbridge",
    dedupeKey: "k",
    receivedAt: NOON,
    body: '{"detail":{"token":"body-of-a-notice"}}',
    outcome: "matched",
    machineIds: ["i-1"],
    deadline: null,
    reason: null,
  };
  return new FakeControlPlane({
    pools: [{ ...state, document }],
    instances: [anInstance("orders-a")],
    evidence: [someEvidence()],
    steps: [HELD],
    notices: [notice],
  });
}

const LOG = [
  '{"level":"info","msg":"request","headers":{"authorization":"Bearer log-bearer-token-1"}}',
  '{"level":"info","msg":"url postgresql://relevo:log-db-password@db/relevo"}',
  '{"level":"info","msg":"token=log-query-token and the-token-of-the-caller"}',
  '{"level":"info","msg":"an instance serves","instance":"orders-a"}',
].join("\n");

test("the bundle has what helps, and no token, no Secret, no environment, no body of a notice", async () => {
  const env = { RELEVO_SERVER: SERVER, RELEVO_TOKEN: "the-token-of-the-caller", RELEVO_WEBHOOK_SECRET: "the-webhook-secret" };
  const { code, out } = await runCli(["bundle", "--file", "-", "--logs", "controller.log"], {
    fake: secretiveFleet(),
    env,
    files: { "controller.log": LOG },
  });
  const content = JSON.parse(out) as Readonly<Record<string, never>>;

  expect([code, Object.keys(content).toSorted()]).toEqual([
    0,
    [
      ...[
        "at",
        "caller",
        "capacity",
        "controllers",
        "cordons",
        "events",
        "evidence",
        "explanations",
        "forcedSeals",
        "gateways",
        "health",
        "instances",
      ],
      ...["logs", "metrics", "nodes", "notices", "pools", "readiness", "sources", "steps", "store", "versions", "workloads"],
    ],
  ]);
  expect(JSON.stringify(content)).not.toContain('"missing"');
  expect(out).toContain("orders-a");
  expect(out).toContain("node_drifted");
  expect(out).toContain("relevo_");
  expect(content.logs).toEqual([
    {
      file: "controller.log",
      tail: [
        '{"level":"info","msg":"request","headers":{"authorization":"Bearer [redacted]"}}',
        '{"level":"info","msg":"url postgresql://relevo:[redacted]@db/relevo"}',
        '{"level":"info","msg":"token=[redacted] and [redacted]"}',
        '{"level":"info","msg":"an instance serves","instance":"orders-a"}',
      ],
    },
  ]);
  for (const leak of [
    "hunter2",
    "env-value",
    "DB_PASSWORD",
    "body-of-a-notice",
    "in-a-payload",
    "the-token-of",
    "webhook-secret",
    "log-bearer",
    "log-db",
  ])
    expect([leak, out.includes(leak)]).toEqual([leak, false]);
});

test("what the environment says of the store and of tokens in files is known to be secret, wherever it turns up", async () => {
  const secrets = ["the-pass/word", "the-pass%2Fword", "the-file-password", "the-file-token"];
  const { out } = await runCli(["bundle", "--file", "-", "--logs", "controller.log"], {
    fake: secretiveFleet(),
    env: {
      RELEVO_SERVER: SERVER,
      RELEVO_STORE: "postgresql://relevo:the-pass%2Fword@db/relevo",
      RELEVO_STORE_PASSWORD_FILE: "password",
      RELEVO_TOKEN_FILE: "token",
    },
    files: { password: "the-file-password\n", token: "the-file-token\n", "controller.log": `said ${secrets.join(" and ")}\n` },
  });
  expect(JSON.parse(out).logs[0].tail).toEqual(["said [redacted] and [redacted] and [redacted] and [redacted]"]);
});

test("a pool that cannot be explained hides no other's explanation", async () => {
  const fake = secretiveFleet();
  const explain = fake.explain.bind(fake);
  let asked = 0;
  fake.explain = async (subject) => {
    if (asked++ === 0)
      throw new RelevoError("owner_unreachable", "The pool is controller b's, which does not answer.", { class: "retryable" });
    return explain(subject);
  };
  const { out } = await runCli(["bundle", "--file", "-"], { fake });
  const { explanations, pools } = JSON.parse(out) as { readonly explanations: readonly object[]; readonly pools: readonly object[] };
  expect(explanations.map((each) => "missing" in each)).toEqual(pools.map((_, index) => index === 0));
});

test("a bundle is written once, for its owner alone, and never over a file that is there", async () => {
  const fake = secretiveFleet();
  const there = await runCli(["bundle", "--file", "mine.json"], { fake, files: { "mine.json": "mine" } });
  expect([there.code, there.err]).toEqual([2, expect.stringContaining("file_not_written")]);
  expect((await runCli(["bundle", "--file", "new.json"], { fake })).out).toMatch(
    /^new\.json: \d+ KiB; look through it before you send it\n$/,
  );
});

test.each([
  [
    "a field that is called so",
    { apiToken: "x", nested: [{ clientSecret: "y", name: "z" }] },
    { apiToken: "[redacted]", nested: [{ clientSecret: "[redacted]", name: "z" }] },
  ],
  [
    "all that is in a field that is called so",
    { tokens: ["a"], credentials: { user: "u", keys: ["k"], expires: 1 } },
    { tokens: ["a"], credentials: { user: "[redacted]", keys: ["[redacted]"], expires: 1 } },
  ],
  ["a token of Kubernetes", "got eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln here", "got [redacted] here"],
  ["a key of AWS", "AKIAABCDEFGHIJKLMNOP", "[redacted]"],
  ["a private key", "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "[redacted]"],
  ["a signature", `x-relevo-signature: sha256=${"a".repeat(64)}`, "x-relevo-signature: [redacted]"],
  ["what is known to be secret", "before known-secret after", "before [redacted] after"],
  ["what is none", { tokens: 3, name: "orders", at: 1, gone: null }, { tokens: 3, name: "orders", at: 1, gone: null }],
])("redacted: %s", (_name, value, clean) => {
  expect(redactor(["known-secret", "abc"])(value)).toEqual(clean);
});

test("of a folder only what is named as logs are goes into the bundle: keys and stores lie beside them", async () => {
  const files = { "controller.log": "an instance serves\n", "gateway.key": "the-key", "store.db.lease-key": "the-key", "store.db": "rows" };
  const { code, out, err } = await runCli(["bundle", "--file", "-", "--logs", "."], { fake: secretiveFleet(), files });
  expect([code, JSON.parse(out).logs]).toEqual([0, [{ file: "controller.log", tail: ["an instance serves"] }]]);
  expect(err).toContain("left out, not named as logs are: ");
});
