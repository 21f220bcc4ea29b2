import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { ConnectionFile } from "./connection-file.ts";
import { parseConnections, readConnections } from "./read-connections.ts";

const FILES: Readonly<Record<string, string>> = { "/secrets/token": "from-a-file\n" };
const surroundings = {
  env: { QUEUE_TOKEN: "s3cret: [value", EMPTY: "" },
  read: (path: string) => {
    const text = FILES[path];
    if (text === undefined) throw new Error(`ENOENT ${path}`);
    return Buffer.from(text);
  },
};
const parse = (text: string) => parseConnections(text, "connections.yaml", surroundings);
const told = (text: string): string => {
  try {
    parse(text);
  } catch (error) {
    return (error as Error).message;
  }
  return "nothing";
};

test("secrets are filled in from the environment and from files, whatever is in them (K8)", () => {
  expect(
    parse(`connections:
  - { name: main, kind: queue, url: "http://127.0.0.1:7091", token: "\${env:QUEUE_TOKEN}" }
  - name: other
    kind: queue
    url: http://127.0.0.1:7091
    token: \${file:/secrets/token}
    sites: [north]
    namespaces: [shop]
`),
  ).toEqual([
    { name: "main", kind: "queue", url: "http://127.0.0.1:7091", token: "s3cret: [value" },
    { name: "other", kind: "queue", url: "http://127.0.0.1:7091", token: "from-a-file", sites: ["north"], namespaces: ["shop"] },
  ]);
  expect(parse("")).toEqual([]);
});

test("what is wrong is told by line and field, and never what is in it", () => {
  const head = "connections:\n  - name: main\n    kind: queue\n    url: http://127.0.0.1:7091\n";
  expect(told(`${head}    token: \${env:NOWHERE}\n`)).toBe("connections.yaml:5:12: connections[0].token: the environment has no NOWHERE");
  expect(told(`${head}    token: \${env:EMPTY}\n`)).toBe("connections.yaml:5:12: connections[0].token: the environment has no EMPTY");
  expect(told(`${head}    token: \${file:/nowhere}\n`)).toBe(
    "connections.yaml:5:12: connections[0].token: the file /nowhere cannot be read",
  );
  expect(told(head)).toMatch(/^connections\.yaml:2:5: connections\[0\]\.token is missing/);
  expect(told("connections:\n  - name: main\n    kind: queue\n    url: s3cret\n    token: t\n")).toMatch(
    /^connections\.yaml:4:10: connections\[0\]\.url: it must be a URL of http or https/,
  );
  expect(told(`${head}    tokn: s3cret\n    token: t\n`)).toMatch(/connections\[0\]\.tokn is no field/);
  expect(told("connections: [\n")).toMatch(/^connections\.yaml:\d+:\d+: this is not YAML/);
  expect(told("connections:\n  - { name: main, kind: rabbitmq, url: s3cret }\n")).toMatch(
    /^connections\.yaml:2:\d+: connections\[0\]\.kind/,
  );
  const twice = "  - { name: main, kind: queue, url: 'http://a', token: s3cret }\n";
  expect(told(`connections:\n${twice}${twice}`)).toMatch(/two connections have one name/);
  for (const text of [`${head}    token: 5\n    password: s3cret\n`, `connections:\n${twice}${twice}`, "connections: s3cret"])
    expect(told(text)).not.toContain("s3cret");
});

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relevo-connections-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("a file that changes is taken over, also a secret that it names; one that is wrong leaves what was", async () => {
  const path = join(folder, "connections.yaml");
  const secret = join(folder, "token");
  const entry = (name: string, token: string) => `  - { name: ${name}, kind: queue, url: "http://127.0.0.1:1", token: "${token}" }\n`;
  writeFileSync(secret, "one\n");
  writeFileSync(path, `connections:\n${entry("main", `\${file:${secret}}`)}${entry("other", "t")}`);
  const clock = new VirtualClock();
  const logged: string[] = [];
  let changes = 0;
  const file = new ConnectionFile({ read: () => readConnections(path, {}), clock, log: (_level, message) => void logged.push(message) });
  file.onChange(() => (changes += 1));
  const other = file.find("other");

  await clock.advance(5_000);
  expect([file.find("main"), changes]).toMatchObject([{ token: "one" }, 0]);

  writeFileSync(secret, "two\n");
  await clock.advance(5_000);
  expect([file.find("main"), changes]).toMatchObject([{ token: "two" }, 1]);
  expect(file.find("other")).toBe(other);

  writeFileSync(path, "connections: [{ name: main }]\n");
  await clock.advance(10_000);
  expect([file.find("main"), changes]).toMatchObject([{ token: "two" }, 1]);
  expect(file.trouble()).toMatch(/connections\[0\]/);
  expect(logged).toEqual(["connections were read again", "the connections from before stay"]);

  writeFileSync(path, `connections:\n${entry("other", "t")}`);
  await clock.advance(5_000);
  expect([file.find("main"), file.find("other"), changes, file.trouble()]).toEqual([undefined, other, 2, undefined]);
  file.stop();
});

test("a file that is wrong at the start is told to whoever starts", () => {
  const clock = new VirtualClock();
  const read = () => readConnections(join(folder, "nowhere.yaml"), {});
  expect(() => new ConnectionFile({ read, clock, log: () => undefined })).toThrow(/nowhere\.yaml: it cannot be read/);
});

test("what cannot stand in a header or would be shown with an address is refused at once: nothing repeats a secret later (K8)", () => {
  const head = "connections:\n  - name: main\n    kind: queue\n";
  const good = "    url: http://127.0.0.1:7091\n";
  const refused = [
    told(`${head}${good}    token: "hunter2\\nhunter3"\n`),
    told(`${head}${good}    token: hunter2€\n`),
    told(`${head}    url: http://u:hunter2@127.0.0.1\n    token: t\n`),
    told(`${head}    url: file:///hunter2\n    token: t\n`),
  ];
  expect(refused).toEqual([
    "connections.yaml:5:12: connections[0].token: it must be one line of printable ASCII",
    "connections.yaml:5:12: connections[0].token: it must be one line of printable ASCII",
    "connections.yaml:4:10: connections[0].url: it must be a URL of http or https, without user and password",
    "connections.yaml:4:10: connections[0].url: it must be a URL of http or https, without user and password",
  ]);
});

test("aliases without end are one sentence with the file", () => {
  expect(told("connections: &a [*a]\n")).toBe("connections.yaml: it has YAML aliases, which are not taken here");
});

test("a device or a pipe neither fills the memory nor holds the controller up", () => {
  const text = 'connections: [{ name: main, kind: queue, url: "http://127.0.0.1", token: "${file:/dev/zero}" }]';
  const folder = mkdtempSync(join(tmpdir(), "relevo-connections-"));
  try {
    const path = join(folder, "connections.yaml");
    writeFileSync(path, text);
    expect(() => readConnections(path, {})).toThrow("connections[0].token: the file /dev/zero cannot be read");
    expect(() => readConnections("/dev/zero", {})).toThrow("/dev/zero: it cannot be read");
    writeFileSync(path, `connections: [] # ${"x".repeat(1024 * 1024)}`);
    expect(() => readConnections(path, {})).toThrow("it is larger than 1 MiB");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
