/** Who we are, as it changes while the process lives. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { KubeconfigCredentials } from "./credentials.ts";

let folder: string;
let clock: VirtualClock;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relevo-credentials-"));
  clock = new VirtualClock();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

function credentialsOf(user: object, cluster: object = {}): KubeconfigCredentials {
  const path = file(
    "config",
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "here", cluster: { server: "https://127.0.0.1:1", ...cluster } }],
      users: [{ name: "me", user }],
      contexts: [{ name: "one", context: { cluster: "here", user: "me" } }],
      "current-context": "one",
    }),
  );
  const load = async (): Promise<KubeConfig> => {
    const config = new KubeConfig();
    config.loadFromFile(path);
    return config;
  };
  return new KubeconfigCredentials(load, clock);
}

const tokenOf = async (credentials: KubeconfigCredentials): Promise<string | undefined> =>
  (await credentials.current()).headers["authorization"];

/** A plugin that counts its calls, and answers with what the file `answer` holds. */
function plugin(answer: object): object {
  file("answer", JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status: answer }));
  const command = file(
    "plugin",
    `#!/bin/sh\necho call >> "${folder}/calls"\necho "$KUBERNETES_EXEC_INFO" > "${folder}/info"\ncat "${folder}/answer"\n`,
  );
  chmodSync(command, 0o700);
  return { exec: { apiVersion: "client.authentication.k8s.io/v1", command, args: [], interactiveMode: "Never" } };
}

async function calls(): Promise<number> {
  const { readFileSync } = await import("node:fs");
  return readFileSync(join(folder, "calls"), "utf8").trim().split("\n").length;
}

test("a service account's token is read again within a minute after the kubelet has renewed it, and its line end is no part of it", async () => {
  const credentials = credentialsOf({ "auth-provider": { name: "tokenFile", config: { tokenFile: file("token", "first\n") } } });
  expect(await tokenOf(credentials)).toBe("Bearer first");
  file("token", "second\n");
  expect(await tokenOf(credentials)).toBe("Bearer first");
  await clock.advance(60_000);
  expect(await tokenOf(credentials)).toBe("Bearer second");
});

test("a token that the server refuses is read again at once, and not in a loop", async () => {
  const credentials = credentialsOf({ "token-file": file("token", "first") });
  expect(await tokenOf(credentials)).toBe("Bearer first");
  file("token", "second");
  expect(credentials.refused()).toBe(true);
  expect(await tokenOf(credentials)).toBe("Bearer second");
  expect(credentials.refused()).toBe(false);
  await clock.advance(10_000);
  expect(credentials.refused()).toBe(true);
});

test("an exec plugin is asked once for many calls, told how it is called, and asked again when the server refuses its token", async () => {
  const credentials = credentialsOf(plugin({ token: "first" }));
  expect(await Promise.all([1, 2, 3, 4].map(() => tokenOf(credentials)))).toEqual(Array.from({ length: 4 }, () => "Bearer first"));
  await clock.advance(3_600_000);
  expect([await tokenOf(credentials), await calls()]).toEqual(["Bearer first", 1]);
  const { readFileSync } = await import("node:fs");
  expect(JSON.parse(readFileSync(join(folder, "info"), "utf8"))).toEqual({
    apiVersion: "client.authentication.k8s.io/v1",
    kind: "ExecCredential",
    spec: { interactive: false },
  });

  plugin({ token: "second" });
  credentials.refused();
  expect([await tokenOf(credentials), await calls()]).toEqual(["Bearer second", 2]);
});

test("an exec plugin may answer with a client certificate", async () => {
  const credentials = credentialsOf(plugin({ clientCertificateData: "CERT", clientKeyData: "KEY" }));
  expect(await credentials.current()).toEqual({ headers: {}, tls: { ca: undefined, cert: "CERT", key: "KEY" } });
});

test("certificate files are read again when they rotate", async () => {
  const user = { "client-certificate": file("cert", "one"), "client-key": file("key", "one") };
  const credentials = credentialsOf(user, { "certificate-authority": file("ca", "one") });
  const texts = async (): Promise<unknown> => Object.values((await credentials.current()).tls).map(String);
  expect(await texts()).toEqual(["one", "one", "one"]);
  for (const name of ["cert", "key", "ca"]) file(name, "two");
  await clock.advance(60_000);
  expect(await texts()).toEqual(["two", "two", "two"]);
});

test("a plugin that fails is a retryable error with its words, and is asked again", async () => {
  const credentials = credentialsOf({ exec: { command: "/bin/sh", args: ["-c", "echo no luck >&2; exit 1"] } });
  const refusal = expect.objectContaining({ code: "kube_credentials", class: "retryable", found: "no luck\n" });
  await expect(credentials.current()).rejects.toThrow(refusal);
  await expect(credentials.current()).rejects.toThrow(refusal);
});

test("a plugin that hangs is given up after half a minute, and not started a second time beside itself before minutes are over", async () => {
  const command = file("hanging", `#!/bin/sh\necho call >> "${folder}/calls"\nexec sleep 3\n`);
  chmodSync(command, 0o700);
  const credentials = credentialsOf({ exec: { command, args: [] } });
  const first = credentials.current().catch((error: unknown) => error);
  await expect.poll(calls).toBe(1);
  await clock.advance(30_000);
  expect(await first).toMatchObject({ code: "kube_credentials", found: "no answer after 30 s" });
  const second = credentials.current().catch((error: unknown) => error);
  await clock.advance(30_000);
  expect(await second).toMatchObject({ code: "kube_credentials" });
  expect(await calls()).toBe(1);
  await clock.advance(240_000);
  const third = credentials.current().catch((error: unknown) => error);
  await expect.poll(calls).toBe(2);
  await clock.advance(30_000);
  expect(await third).toMatchObject({ code: "kube_credentials" });
});
