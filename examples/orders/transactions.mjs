/**
 * Transactions of several requests, kept in this process until the commit writes them to the ledger: on another instance they do not exist (404), so that
 * a request on the wrong instance is seen.
 */
import { randomUUID } from "node:crypto";
import { idOf, sendJson } from "./http.mjs";

const DEFAULT_TTL_MS = 10_000;
const MAX_TTL_MS = 60_000;
const MAX_ITEMS = 1_000;

export function createTransactions(ledger) {
  const open = new Map();

  return {
    begin(instance, body, res) {
      const id = body.id === undefined ? randomUUID() : idOf(body.id);
      const ttlMs = Math.min(MAX_TTL_MS, Number(body.ttlMs) || DEFAULT_TTL_MS);
      instance.transactions.begin(id, ttlMs, res, () => open.delete(id));
      open.set(id, []);
      sendJson(res, 201, { id, by: instance.name });
    },

    addItem(instance, id, body, res) {
      const items = open.get(id);
      if (items === undefined) return sendJson(res, 404, { error: `no transaction ${id} is open here` });
      if (items.length >= MAX_ITEMS) return sendJson(res, 409, { error: `a transaction takes ${MAX_ITEMS} items` });
      items.push(idOf(body.id));
      instance.transactions.touch(id);
      sendJson(res, 200, { items: items.length });
    },

    /** The items first, the transaction's own id last: who finds it in the ledger finds them all. */
    async commit(instance, id, res) {
      const items = open.get(id);
      if (items === undefined) return sendJson(res, 404, { error: `no transaction ${id} is open here` });
      open.delete(id);
      await Promise.all(items.map((item) => ledger.append(item, "item", { once: true })));
      await ledger.append(id, "tx", { once: true });
      instance.transactions.end(id, res);
      sendJson(res, 200, { id, items: items.length, by: instance.name });
    },
  };
}
