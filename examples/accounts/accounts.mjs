/**
 * Accounts: a service whose result must come from one writer at a time. It keeps balances in memory and writes each deposit to the landing
 * (`LANDING_URL`, landing.mjs), which compares writer epochs: what an instance wrote that had stood still, and was replaced meanwhile, does not land.
 *
 * Without a Pool that has a lease (`spec.state.lease`) it refuses to write, unless UNFENCED=1: then nothing protects the landing.
 */
import { existsSync } from "node:fs";

// A workload of your own imports "relevo/sdk"; in a clone, which is not built, the sources are taken.
const sources = new URL("../../src/sdk/index.ts", import.meta.url);
const { createInstance, createSink } = await import(existsSync(sources) ? sources.href : "relevo/sdk");

const landingUrl = process.env.LANDING_URL ?? "http://127.0.0.1:8090";
/** How long a request waits for an instance whose turn has not come yet. */
const WAIT_FOR_LEASE_MS = 5_000;

const instance = createInstance({
  handler: (request, response) => {
    answer(request).then(
      ({ status, body }) => send(response, status, body),
      (error) => send(response, statusOf(error), { error: { code: error.code ?? "failed", message: error.message } }),
    );
  },
  // From here on nothing that a former writer still sends lands; only then does this one write.
  onLease: (stamp) => post("open", { stamp }),
});

const sink = createSink({
  writer: instance.writer,
  whenUnleased: process.env.UNFENCED === "1" ? "allow" : "refuse",
  land: (deposit, stamp) => post("deposits", { ...deposit, stamp }),
});

/** POST /deposits {id, account, cents} */
async function answer(request) {
  if (request.method !== "POST" || request.url !== "/deposits") return { status: 404, body: { error: { code: "not_found" } } };
  await instance.writer.whenHeld(WAIT_FOR_LEASE_MS);
  // Taken when the work begins: what is read and reckoned from here on belongs to this epoch.
  const stamp = sink.stamp();
  const { id, account, cents } = JSON.parse(await textOf(request));
  return { status: 201, body: await sink.write({ id, account, cents }, stamp) };
}

async function post(path, body) {
  const answered = await fetch(`${landingUrl}/${path}`, { method: "POST", body: JSON.stringify(body) });
  const result = await answered.json();
  if (answered.ok) return result;
  throw Object.assign(new Error(result.error.message), { code: result.error.code });
}

async function textOf(request) {
  let text = "";
  for await (const chunk of request) {
    text += chunk;
    if (text.length > 64 * 1024) throw Object.assign(new Error("the body is too long"), { code: "body_too_large" });
  }
  return text;
}

function statusOf(error) {
  return error instanceof SyntaxError || error.code === "body_too_large" ? 400 : 503;
}

function send(response, status, body) {
  const text = JSON.stringify(body);
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  response.end(text);
}

process.once("SIGTERM", async () => {
  await instance.perform("close", "sigterm", null);
  await instance.whenIdle();
  process.exit(0);
});

const { host, port } = await instance.listen();
console.log(JSON.stringify({ message: "accounts serves", host, port, instance: instance.name, bootId: instance.bootId }));
