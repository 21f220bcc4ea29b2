/** In a pod, as the kubelet makes one: its service account is in files at a fixed place, the API server in two variables (needs the right to mount). */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
const CONFIG = join(import.meta.dirname, "config.ts");

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "relevo-in-cluster-"));
  execFileSync(
    "openssl",
    [
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", "/CN=kubernetes"],
      ...["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", join(folder, "tls.key"), "-out", join(folder, "ca.crt")],
    ],
    { stdio: "pipe" },
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a process prints that has the files of a service account there and nowhere else; nobody outside of it sees them. */
function inPod(script: string, env: Readonly<Record<string, string>>): Promise<string> {
  const mounted = [
    "mount -t tmpfs account /var/run",
    `mkdir -p ${ACCOUNT}`,
    `cp "${join(folder, "ca.crt")}" ${ACCOUNT}/ca.crt`,
    `printf first > ${ACCOUNT}/token`,
    `printf relevo-system > ${ACCOUNT}/namespace`,
    `exec "${process.execPath}" --no-warnings --input-type=module-typescript -e "$SCRIPT"`,
  ].join(" && ");
  const child = spawn("unshare", ["--mount", "sh", "-c", mounted], {
    env: { PATH: process.env["PATH"], SCRIPT: script, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data: Buffer) => (said += data.toString("utf8")));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", () => resolve(said.trim()));
  });
}

test("without a kubeconfig the pod's service account is who we are, its authority is the server's, and a renewed token is used", async () => {
  const tokens: unknown[] = [];
  const pair = { key: readFileSync(join(folder, "tls.key")), cert: readFileSync(join(folder, "ca.crt")) };
  const server = createServer(pair, (request, response) => {
    tokens.push(request.headers.authorization);
    const isKnown = tokens.length === 1 || request.headers.authorization === "Bearer second";
    response.writeHead(isKnown ? 200 : 401, { "content-type": "application/json" });
    response.end(isKnown ? '{"metadata":{"resourceVersion":"7"},"items":[]}' : '{"kind":"Status","code":401,"reason":"Unauthorized"}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const script = `
    import { writeFileSync } from "node:fs";
    const { loadKubeApi } = await import(${JSON.stringify(CONFIG)});
    const { CONFIG_MAPS } = await import(${JSON.stringify(join(import.meta.dirname, "resources.ts"))});
    const api = await loadKubeApi();
    const list = async () => (await api.list(CONFIG_MAPS)).resourceVersion;
    const first = await list();
    writeFileSync("${ACCOUNT}/token", "second");
    console.log(first, await list());
    await api.close();
  `;
  const port = String((server.address() as AddressInfo).port);
  const said = await inPod(script, { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: port, HOME: folder });
  await new Promise((resolve) => server.close(resolve));

  expect(said).toBe("7 7");
  expect(tokens).toEqual(["Bearer first", "Bearer first", "Bearer second"]);
});
