/** What orders serves; `createRoutes` gives the request handler and the upgrade handler. */
import { BadRequest, idOf, readJson, sendJson } from "./http.mjs";
import { LedgerClient } from "./ledger-client.mjs";
import { createLive } from "./live.mjs";
import { createTransactions } from "./transactions.mjs";

const EXPORT_CHUNK_MS = 200;
const MAX_EXPORT_SECONDS = 60;

/** To look around without one: nothing can be checked afterwards. */
const NO_LEDGER = { append: async () => undefined };

export function createRoutes(ledgerUrl) {
  const ledger = ledgerUrl ? new LedgerClient(ledgerUrl) : NO_LEDGER;
  const live = createLive(ledger);
  const transactions = createTransactions(ledger);
  let instance;

  async function route(req, res) {
    const url = new URL(req.url, "http://orders");
    const [, first, second, third] = url.pathname.split("/");
    const call = `${req.method} /${first}${second ? "/:id" : ""}${third ? `/${third}` : ""}`;
    switch (call) {
      case "POST /orders":
        return acknowledge(req, res, (id) => ledger.append(id, "order"));
      case "POST /charge":
        return acknowledge(req, res, (id) => ledger.append(id, "charge", { once: true }));
      case "GET /export":
        return streamExport(url, res);
      case "POST /tx":
        return transactions.begin(instance, await readJson(req), res);
      case "POST /tx/:id/items":
        return transactions.addItem(instance, second, await readJson(req), res);
      case "POST /tx/:id/commit":
        return transactions.commit(instance, second, res);
      default:
        return sendJson(res, 404, { error: `nothing is served at ${call}` });
    }
  }

  /** The acknowledgement goes out only after the ledger has the id. */
  async function acknowledge(req, res, write) {
    const id = idOf((await readJson(req)).id);
    await write(id);
    sendJson(res, 201, { id, by: instance.name });
  }

  /** Numbered lines for some seconds; the last one says `end`, so that a client sees when it was cut short. */
  async function streamExport(url, res) {
    const id = idOf(url.searchParams.get("id"));
    const seconds = Math.min(MAX_EXPORT_SECONDS, Math.max(0, Number(url.searchParams.get("seconds") ?? 3)));
    if (!Number.isFinite(seconds)) throw new BadRequest("`seconds` must be a number");
    const lines = Math.max(1, Math.round((seconds * 1000) / EXPORT_CHUNK_MS));
    res.writeHead(200, { "content-type": "application/x-ndjson" });
    for (let line = 0; line < lines && !res.destroyed; line++) {
      res.write(`${JSON.stringify({ line, by: instance.name })}\n`);
      await new Promise((resolve) => setTimeout(resolve, EXPORT_CHUNK_MS));
    }
    if (res.destroyed) return;
    await ledger.append(id, "export");
    res.end(`${JSON.stringify({ end: true, id, lines })}\n`);
  }

  return {
    attach(made) {
      instance = made;
      live.attach(made);
    },
    async handle(req, res) {
      res.on("error", () => undefined); // the client went away: `destroyed` says so
      try {
        await route(req, res);
      } catch (error) {
        fail(res, error);
      }
    },
    upgrade: live.upgrade,
    warm: live.warm,
  };
}

function fail(res, error) {
  if (!(error instanceof BadRequest)) console.error(JSON.stringify({ message: "a request failed", error: String(error?.stack ?? error) }));
  if (res.headersSent) return void res.destroy(); // an open stream can only be cut: the client misses the last line
  sendJson(res, error instanceof BadRequest ? 400 : 500, { error: error.message });
}
