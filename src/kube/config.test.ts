import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadKubeApi } from "./config.ts";
import { CONFIG_MAPS } from "./resources.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relevo-kubeconfig-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function kubeconfig(server: string, user: object = {}): string {
  const path = join(folder, "config");
  const contexts = ["one", "two"].map((name) => ({ name, context: { cluster: name === "one" ? "here" : "nowhere", user: "me" } }));
  writeFileSync(
    path,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "here", cluster: { server } }],
      users: [{ name: "me", user }],
      contexts,
      "current-context": "one",
    }),
  );
  return path;
}

test("a kubeconfig with a plain HTTP server works; its token is sent, and nothing that the library would not send unencrypted", async () => {
  const seen: unknown[] = [];
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.end('{"metadata":{"resourceVersion":"7"},"items":[]}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (const user of [{}, { token: "secret" }, { username: "ann", password: "word" }]) {
    const api = await loadKubeApi({ kubeconfig: kubeconfig(url, user) });
    expect(await api.list(CONFIG_MAPS)).toEqual({ resourceVersion: "7", items: [] });
    await api.close();
  }
  server.close();

  expect(seen).toEqual([undefined, "Bearer secret", undefined]);
});

test("a missing file, an unknown context and a context without a cluster each have a clear error", async () => {
  const path = kubeconfig("http://127.0.0.1:1");
  writeFileSync(join(folder, "broken"), "{");

  await expect(loadKubeApi({ kubeconfig: join(folder, "none") })).rejects.toThrow(
    expect.objectContaining({ code: "kubeconfig_unreadable", found: join(folder, "none") }),
  );
  await expect(loadKubeApi({ kubeconfig: join(folder, "broken") })).rejects.toThrow(
    expect.objectContaining({ code: "kubeconfig_unreadable" }),
  );
  await expect(loadKubeApi({ kubeconfig: path, context: "three" })).rejects.toThrow(
    expect.objectContaining({ code: "kubeconfig_no_context", found: "three", allowed: "one, two" }),
  );
  await expect(loadKubeApi({ kubeconfig: path, context: "two" })).rejects.toThrow(
    expect.objectContaining({ code: "kubeconfig_no_cluster" }),
  );
});
