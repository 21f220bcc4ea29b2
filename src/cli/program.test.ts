import { expect, test } from "vitest";
import { RelevoError } from "../kernel/errors.ts";
import { storeUnavailable } from "../store/port.ts";
import { aPool, anInstance, FakeControlPlane, NOON, someEvidence } from "../server/testing/fake-control-plane.ts";
import type { NodeState } from "../server/control-plane.ts";
import { writeRunFile } from "./run-file.ts";
import type { ProcessCommands } from "./process-commands.ts";
import { runCli } from "./testing/run-cli.ts";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KINDS } from "./kinds.ts";
import { shellWord } from "./output.ts";
import { assertRunFileCanBeWritten, readRunFile, removeRunFile } from "./run-file.ts";

function aNode(name: string, overrides: Partial<NodeState> = {}): NodeState {
  return {
    name,
    uid: `${name}-uid`,
    zone: "zone-a",
    instanceType: null,
    capacityType: null,
    machineId: `i-${name}`,
    ready: true,
    unschedulable: false,
    cordonedByUs: false,
    deleting: false,
    owner: { provisioner: "karpenter", name: `claim-${name}`, uid: `claim-${name}-uid` },
    findings: [],
    instances: [],
    ...overrides,
  };
}

const fleet = () =>
  new FakeControlPlane({
    pools: [aPool()],
    instances: [
      anInstance("orders-a"),
      anInstance("orders-b", { phase: "draining", drainLoss: "voluntary", drainSince: NOON - 5_000 }),
      anInstance("orders-z", { phase: "deleted" }),
    ],
    evidence: [someEvidence({ instance: "orders-b", firstSeen: NOON - 61_000 })],
    nodes: [aNode("node-a", { instances: ["orders-a"] }), aNode("node-b")],
  });

test("a table has its heads, ages and no colours where there is no terminal", async () => {
  expect(await runCli(["get", "instances"], { fake: fleet() })).toEqual({
    code: 0,
    err: "",
    out: [
      "INSTANCE  POOL            PHASE                 SINCE  HEALTH   NODE    WORK   REPLACES",
      "orders-a  default/orders  serving               1m     passing  node-a  2 + 1  -",
      "orders-b  default/orders  draining (voluntary)  1m     passing  node-a  2 + 1  -",
      "",
    ].join("\n"),
  });
});

test("events are what happened lately, the newest first", async () => {
  const fake = fleet();
  const serving = {
    at: NOON - 5_000,
    kind: "phase",
    pool: "default/orders",
    subject: "orders-a",
    code: "serving",
    from: "admitted",
  } as const;
  const joined = { at: NOON - 61_000, kind: "gateway", pool: null, subject: "gw-1", code: "registered", from: null, reason: null } as const;
  fake.state.events = [{ ...serving, reason: { code: "serving", params: {} } }, joined];

  expect((await runCli(["get", "events"], { fake })).out).toBe(
    [
      "AT    KIND     POOL            SUBJECT   WHAT                WHY",
      "5s    phase    default/orders  orders-a  admitted → serving  serving",
      "1m1s  gateway  -               gw-1      registered          -",
      "",
    ].join("\n"),
  );
  fake.state.pools = [...fake.state.pools, aPool({ pool: "default/quotes" })];
  const narrowed = await runCli(["get", "events", "--pool", "quotes", "-o", "json"], { fake });
  expect(narrowed.out).toBe('{\n  "items": []\n}\n');
});

test("wide has more columns, --all what is past, json and yaml everything", async () => {
  const fake = fleet();

  const wide = await runCli(["get", "pools", "-o", "wide"], { fake });
  const all = await runCli(["get", "instances", "--all", "-o", "json"], { fake });
  const yaml = await runCli(["-o", "yaml", "get", "evidence"], { fake });

  expect(wide.out).toBe(
    [
      "POOL            MODE  DESIRED  SERVING  STANDBY  COMING  LEAVING  HELD  WHY            FLOOR  MAX  PROVEN  ROUTE   GENERATION  EPOCH  OWNER         LOST",
      "default/orders  Act   4        4        -        0       0        0     nothing_to_do  3      8    -       orders  0.7         0.3    controller-1  -",
      "",
    ].join("\n"),
  );
  expect((JSON.parse(all.out) as { items: { id: string }[] }).items.map(({ id }) => id)).toEqual(["orders-a", "orders-b", "orders-z"]);
  expect(yaml.out).toContain("items:\n  - id: ev-1\n    pool: default/orders\n    instance: orders-b\n");
});

test("one thing is found by its name; a pool also without its namespace", async () => {
  const found = await runCli(["get", "pool", "orders", "-o", "json"], { fake: fleet() });
  const absent = await runCli(["get", "instance", "other"], { fake: fleet() });

  expect([found.code, JSON.parse(found.out)]).toMatchObject([0, { pool: "default/orders" }]);
  expect(absent).toEqual({
    code: 1,
    out: "",
    err: "relevo: There is no instance other (not_found); found: other; see relevo get instances\n",
  });
});

test("what is no kind, no option or no command is a usage error, with what was probably meant", async () => {
  expect(await runCli(["get", "instnces"])).toEqual({
    code: 2,
    out: "",
    err: "relevo: There is nothing called instnces (kind_unknown); found: instnces; allowed: pools, instances, evidence, workloads, steps, scale, exceptions, events, notices, sources, cordons, nodes, gateways, controllers, capacity; did you mean instances?\n",
  });
  expect((await runCli(["get", "pools", "-o", "jsn"])).code).toBe(2);
  expect((await runCli(["aply"])).err).toContain("(Did you mean apply?)");
  expect((await runCli([])).code).toBe(2);
  expect((await runCli(["--help"])).code).toBe(0);
});

test("explain tells why in sentences, the evidence and the steps", async () => {
  expect(await runCli(["explain", "orders-b"], { fake: fleet() })).toEqual({
    code: 0,
    err: "",
    out: [
      "instance orders-b of pool default/orders",
      "draining for 1m, health passing, on node-a",
      "leaves (voluntary)",
      "",
      "why",
      "  no evidence is against any instance (nothing_condemned, for 1s)",
      "",
      "evidence",
      "  SEEN  INSTANCE  LOSS       REASON        NODE    DEADLINE",
      "  1m1s  orders-b  voluntary  node_drifted  node-a  -",
      "",
    ].join("\n"),
  });
  expect((await runCli(["explain", "orders"], { fake: fleet() })).out).toContain("pool default/orders\n");
});

test("plan tells what would be done and what is left, each with its reason", async () => {
  expect((await runCli(["plan", "orders"], { fake: fleet() })).out).toBe(
    [
      "pool default/orders",
      "would be done",
      "  create_instance orders-a: 3 of 4 instances serve: one more is created (below_desired)",
      "left as it is",
      "  orders-b: 4 serve and 4 are desired: a voluntary drain waits for one more (serving_not_above_desired)",
      "next look in 5s",
      "",
    ].join("\n"),
  );
});

test("exit codes: refused 3, failed 1, usage 2, held 4", async () => {
  const frozen = new FakeControlPlane({
    pools: [aPool({ freeze: { until: NOON + 60_000, why: "audit", by: "bob" } })],
    instances: [anInstance("orders-a")],
  });
  const away = new FakeControlPlane({ failure: storeUnavailable("disk full", new Error("ENOSPC")) });

  const refused = await runCli(["uncordon", "node-a"], { fake: fleet() });
  const failed = await runCli(["unfreeze", "--all"], { fake: away });
  const usage = await runCli(["freeze", "--for", "2h", "--reason", "audit"], { fake: fleet() });
  const held = await runCli(["drain", "orders-a"], { fake: frozen });
  const many = Array.from({ length: 150 }, (_, at) => anInstance(`orders-${at}`));
  const freeze = { until: NOON + 60_000, why: "audit", by: "ConfigMap default/relevo-freeze" };
  const large = await runCli(["drain", "orders-149"], { fake: new FakeControlPlane({ pools: [aPool({ freeze })], instances: many }) });
  expect([large.code, large.err.split("; ").at(-1)]).toEqual([4, "delete or change ConfigMap default/relevo-freeze\n"]);
  const unreachable = await runCli(["get", "pools"], { fetch: () => Promise.reject(new TypeError("fetch failed")) });

  expect([refused.code, refused.err]).toEqual([
    3,
    "relevo: node-a was not cordoned by Relevo (not_our_cordon); found: node-a; use kubectl uncordon\n",
  ]);
  expect([failed.code, failed.err]).toEqual([
    1,
    "relevo: the store cannot be written: disk full (store_unavailable); free space or repair the disk; nothing was half-written\n",
  ]);
  expect([usage.code, usage.err]).toEqual([2, "relevo: Name a pool, or say --all (pool_or_all); found: neither\n"]);
  expect([held.code, held.out, held.err]).toEqual([
    4,
    "orders-a will make way (evidence ev-1); see npx relevo explain orders-a\n",
    "relevo: orders-a waits: pool default/orders is frozen until 2030-01-01T12:01:00.000Z (pool_frozen); found: audit; npx relevo unfreeze default/orders\n",
  ]);
  expect([unreachable.code, unreachable.err]).toEqual([
    1,
    "relevo: The controller does not answer at http://127.0.0.1:7070 (controller_unreachable); start it with npx relevo up, or name another with --server\n",
  ]);
});

test("--debug adds the stack, and -o json tells the error as JSON", async () => {
  const debug = await runCli(["get", "instance", "other", "--debug"], { fake: fleet() });
  const json = await runCli(["get", "instance", "other", "-o", "json"], { fake: fleet() });

  expect(debug.err).toMatch(/not_found\).*\n.*Error: There is no instance other\.\n\s+at /);
  expect(JSON.parse(json.err)).toEqual({
    error: { code: "not_found", message: "There is no instance other.", found: "other", todo: "see relevo get instances" },
  });
});

test("a notice for a node is an event as AWS sends it, signed where a secret is known (S1)", async () => {
  const fake = fleet();

  const run = await runCli(["notify", "--node", "node-a"], { fake, webhookSecret: "s3cret", env: { RELEVO_WEBHOOK_SECRET: "s3cret" } });
  const unsigned = await runCli(["notify", "i-1"], { fake, webhookSecret: "s3cret" });

  expect(run).toEqual({ code: 0, err: "", out: "spot-interruption for i-node-a: accepted as notice-1\n" });
  const sent = fake.calls[0]?.with as { readonly body: string };
  expect(JSON.parse(sent.body)).toEqual({
    version: "0",
    id: "notice-1",
    "detail-type": "EC2 Spot Instance Interruption Warning",
    source: "aws.ec2",
    account: "123456789012",
    time: "2030-01-01T12:00:00Z",
    region: "eu-west-1",
    resources: ["arn:aws:ec2:eu-west-1:123456789012:instance/i-node-a"],
    detail: { "instance-id": "i-node-a", "instance-action": "terminate" },
  });
  expect([unsigned.code, fake.calls.length]).toEqual([3, 1]);
});

test("a storm interrupts the nodes that carry most, and announces each", async () => {
  const fake = fleet();
  const posted: string[] = [];
  const cluster: typeof fetch = async (input, init) => {
    posted.push(`${String(input)} ${String(init?.body)}`);
    return Response.json({ instanceId: "i-node-a" });
  };

  const none = await runCli(["storm", "--nodes", "1"], { fake });
  const tooMany = await runCli(["storm", "--nodes", "3", "--admin", "http://127.0.0.1:9"], { fake });
  const run = await runCli(["storm", "--nodes", "1", "--deadline", "20s", "--admin", "http://127.0.0.1:9"], { fake, admin: cluster });

  expect([none.code, none.err]).toEqual([
    1,
    "relevo: No embedded cluster is known here: only its nodes can be made to go (no_embedded_cluster); start one with npx relevo up, or name its admin interface with --admin\n",
  ]);
  expect([tooMany.code, tooMany.err]).toEqual([
    2,
    "relevo: There are not 3 nodes that could go (too_few_nodes); found: 2; use --nodes 2 or fewer\n",
  ]);
  expect([run, posted]).toEqual([
    { code: 0, err: "", out: "node-a interrupt, noticed as notice-1, carries orders-a\n" },
    ['http://127.0.0.1:9/embedded/v1/nodes/node-a/interrupt {"deadlineMs":20000}'],
  ]);
});

test("the run file is found in the working directory, readable by its owner alone", () => {
  const cwd = mkdtempSync(join(tmpdir(), "relevo-run-"));
  const run = {
    controllerUrl: "http://127.0.0.1:1",
    token: "t",
    webhookSecret: null,
    gatewayUrl: "http://127.0.0.1:2",
    clusterUrl: null,
    adminUrl: null,
    kubeconfig: "/k",
    pids: { up: 1, controller: 2, gateway: 3, cluster: null },
  };
  try {
    expect(readRunFile(cwd)).toBeUndefined();
    writeRunFile(cwd, run);
    expect(readRunFile(cwd)).toEqual(run);
    expect(statSync(join(cwd, ".relevo", "run.json")).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(cwd, ".relevo", "run.json"), "utf8")).toContain('"token": "t"');
    removeRunFile(cwd);
    expect(readRunFile(cwd)).toBeUndefined();
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
});

test("a command that runs a process gets its options in ms and ports as numbers, and its own exit code is passed on", async () => {
  const seen: unknown[] = [];
  const gateway = async (_context: unknown, options: unknown) => {
    seen.push(options);
    return 3 as const;
  };
  const args = ["gateway", "--controller", "http://127.0.0.1:1", "--key-file", "k", "--port", "0", "--grace", "1m30s"];

  const run = await runCli(args, { processes: { gateway } });
  const wrong = await runCli([...args, "--port", "x"], { processes: { gateway } });

  expect(run.code).toBe(3);
  expect(seen).toMatchObject([
    {
      controller: ["http://127.0.0.1:1"],
      keyFile: "k",
      host: "127.0.0.1",
      port: 0,
      adminHost: "127.0.0.1",
      adminPort: 0,
      grace: 90_000,
      logLevel: "info",
    },
  ]);
  expect([wrong.code, wrong.err]).toEqual([
    2,
    "error: option '--port <port>' argument 'x' is invalid. Allowed: a port from 0 to 65535.\n(relevo gateway --help shows what there is)\n",
  ]);
});

test("a mistake in a command line points to the help of its command", async () => {
  const ofGet = await runCli(["get"]);
  const ofNested = await runCli(["store", "recover"]);

  expect([ofGet.err, ofNested.err]).toEqual([
    "error: missing required argument 'kind'\n(relevo get --help shows what there is)\n",
    "error: required option '--reason <why>' not specified\n(relevo store recover --help shows what there is)\n",
  ]);
});

test("what nobody expected ends with 1 and its sentence", async () => {
  const fake = fleet();
  fake.listPools = () => Promise.reject(new RelevoError("odd", "Something odd."));

  expect(await runCli(["get", "pools"], { fake })).toEqual({ code: 1, out: "", err: "relevo: Something odd (odd)\n" });
});

test("a long-lived instance is found behind more than a hundred that are gone", async () => {
  const gone = Array.from({ length: 150 }, (_, at) => anInstance(`orders-gone-${at}`, { phase: "deleted" }));
  const fake = new FakeControlPlane({ pools: [aPool()], instances: [...gone, anInstance("orders-old")] });

  const listed = await runCli(["get", "instances", "--limit", "5"], { fake });

  expect(listed.out.split("\n").map((line) => line.split(" ")[0])).toEqual(["INSTANCE", "orders-old", ""]);
});

test("what would be silently passed over is a usage error", async () => {
  const of = async (...args: string[]) => {
    const { code, out, err } = await runCli(args);
    return [code, out, err.split("\n")[0]];
  };

  expect(await of("apply")).toEqual([2, "", "error: required option '-f, --filename <file>' not specified"]);
  expect(await of("get", "pools", "--limit", "many")).toEqual([
    2,
    "",
    "error: option '--limit <n>' argument 'many' is invalid. Allowed: a whole number from 1 to 1000.",
  ]);
  expect(await of("get", "nodes", "--pool", "orders")).toEqual([
    2,
    "",
    "relevo: nodes are of no pool: --pool does not narrow them (pool_not_asked); found: orders; allowed: instances, evidence, workloads, steps, scale, exceptions, events",
  ]);
  expect(await of("get", "pools", "--server", "controller:7070")).toEqual([
    2,
    "",
    "relevo: --server is not valid (server_invalid); found: controller:7070; allowed: a URL such as http://127.0.0.1:7070",
  ]);
});

test("a command's help names what is common to all, and that of get all that there is to get", async () => {
  const { out } = await runCli(["get", "--help"]);

  expect(out).toContain("Global Options:");
  const described = out.replace(/\s+/g, " ");
  for (const { plural } of KINDS) expect(described).toMatch(new RegExp(`show [a-z, ]*\\b${plural}\\b[a-z, ]* or capacity`));
  expect(out).toMatch(/-o, --output <form> +how things are printed/);
});

test("a directory that cannot be written is refused before anything starts", () => {
  const cwd = mkdtempSync(join(tmpdir(), "relevo-cli-"));
  try {
    writeFileSync(join(cwd, ".relevo"), "a file where the folder would be");

    expect(() => assertRunFileCanBeWritten(cwd)).toThrow(
      expect.objectContaining({
        code: "directory_not_writable",
        message: `The folder ${join(cwd, ".relevo")} cannot be written.`,
        found: "EEXIST",
      }),
    );
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
});

test("a path that is shown to be copied is one word for a shell", () => {
  expect(["/tmp/a-b/c.yaml", "/tmp/a path/it's"].map(shellWord)).toEqual(["/tmp/a-b/c.yaml", "'/tmp/a path/it'\\''s'"]);
});

test("the store's own commands are told which store, and in which file its password is", async () => {
  const told: unknown[] = [];
  const store: ProcessCommands["store"] = async (_context, what, { store: target, storePasswordFile, file, dryRun, output }) => {
    told.push([what, target, storePasswordFile, file, dryRun, output]);
    return 0;
  };
  const url = "postgresql://me@db/relevo";
  await runCli(["store", "migrate", "--store", url, "--store-password-file", "p", "--dry-run"], { processes: { store } });
  await runCli(["store", "export", "--file", "out.jsonl"], { processes: { store } });
  await runCli(["store", "import", "--store", "x.db", "--dry-run", "-o", "json"], { processes: { store } });
  expect(told).toEqual([
    ["migrate", url, "p", undefined, true, "table"],
    ["export", undefined, undefined, "out.jsonl", undefined, "table"],
    ["import", "x.db", undefined, undefined, true, "json"],
  ]);
});

test("a mistake in the command line is JSON too where the output is, wherever the option stands", async () => {
  const told = (args: readonly string[]) => runCli(args, { fake: fleet() });
  const limit = await told(["get", "pools", "--limit", "x", "-o", "json"]);
  expect([limit.code, JSON.parse(limit.err)]).toEqual([
    2,
    {
      error: {
        code: "commander_invalid_argument",
        message: "error: option '--limit <n>' argument 'x' is invalid. Allowed: a whole number from 1 to 1000.",
      },
    },
  ]);
  const unknown = await told(["--output=json", "bogus"]);
  expect([unknown.code, JSON.parse(unknown.err).error.code]).toEqual([2, "commander_unknown_command"]);
});
