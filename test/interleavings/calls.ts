/** What two sessions do at the same time: each kind of call of the store's port, on rows that they share. */
import { epoch, EPOCH_ZERO } from "../../src/kernel/epoch.ts";
import type { Authority, Change, Store } from "../../src/store/port.ts";
import {
  create,
  DAY,
  evidenceOf,
  incarnation,
  instanceIn,
  move,
  NOON,
  notice,
  POOL,
  recordStep,
  renew,
} from "../contracts/store-fixtures.ts";

export const OTHER_POOL = "shop/other";
export const EMPTY_POOL = "shop/empty";

export interface Seeded {
  readonly owner: Authority;
  readonly other: Authority;
  readonly empty: Authority;
}

/** What both begin with: a pool whose instance i-1 writes, another pool, an empty one, and rows that are past their time. */
export async function seed(store: Store): Promise<Seeded> {
  const old = NOON - 60 * DAY;
  const owner = await store.claim(POOL, "controller-a", NOON);
  await store.commit(owner, [create("i-old", { blueprintHash: "b-old" }), move("i-old", "pending", "failed")], old);
  await store.commit(
    owner,
    [move("i-old", "failed", "retiring"), move("i-old", "retiring", "retired"), move("i-old", "retired", "deleted")],
    old,
  );
  await store.commit(owner, [recordStep("s-old"), { kind: "end_step", step: "s-old", state: "done", outcome: "done" }], old);
  const evidence: Change = { kind: "record_evidence", id: "e-old", evidence: evidenceOf("i-old", { loss: "forced" }) };
  await store.commit(owner, [evidence, { kind: "count_loss", instance: "i-old", loss: "forced", obligations: 1, seal: "forced" }], old);
  await store.commit(
    owner,
    [
      ...instanceIn("serving", "i-1"),
      { kind: "renew_incarnation", instance: "i-1", after: 0, incarnation: incarnation(1) },
      { kind: "pass_writer", ordinal: 0, after: EPOCH_ZERO, to: { instance: "i-1", incarnation: 1, bootId: "boot-1" } },
      recordStep("s-1"),
    ],
    NOON,
  );
  const other = await store.claim(OTHER_POOL, "controller-b", NOON);
  await store.commit(other, instanceIn("serving", "i-other"), NOON);
  const empty = await store.claim(EMPTY_POOL, "controller-a", NOON);
  await store.saveNotice(notice("n-1"));
  await store.saveNotice(notice("n-old", { receivedAt: old }));
  await store.registerGateway("g-1", NOON);
  return { owner, other, empty };
}

export type Call = (store: Store, seeded: Seeded, who: string) => Promise<unknown>;

const commit =
  (...changes: readonly Change[]): Call =>
  (store, { owner }) =>
    store.commit(owner, changes, NOON + 1);

const elsewhere =
  (...changes: readonly Change[]): Call =>
  (store, { other }) =>
    store.commit(other, changes, NOON + 1);

const HOLDER = { pool: POOL, instance: "i-1", bootId: "boot-1" };

export const CALLS: Readonly<Record<string, Call>> = {
  claim: (store, _, who) => store.claim(POOL, who, NOON + 1),
  claim_new: (store, _, who) => store.claim("shop/new", who, NOON + 1),
  let_go: (store, { owner }) => store.letGo(owner),
  release: (store, { empty }) => store.release(empty),
  claim_empty: (store, _, who) => store.claim(EMPTY_POOL, who, NOON + 1),
  drain: commit(move("i-1", "serving", "draining")),
  create: commit(create("i-2", { blueprintHash: "b-old" })),
  create_elsewhere: elsewhere(create("i-2", { blueprintHash: "b-old" }), recordStep("s-2", { pool: OTHER_POOL })),
  journal: commit(recordStep("s-2"), { kind: "end_step", step: "s-1", state: "done", outcome: "done" }),
  repeat_old_step: commit(recordStep("s-old")),
  retry: commit({ kind: "retry_step", step: "s-1", notBefore: NOON + 9, error: "again" }),
  evidence: commit({ kind: "record_evidence", id: "e-1", evidence: evidenceOf("i-1") }),
  evidence_elsewhere: elsewhere({ kind: "record_evidence", id: "e-1", evidence: evidenceOf("i-other") }),
  evidence_of_old: commit({ kind: "record_evidence", id: "e-2", evidence: evidenceOf("i-old") }),
  loss: commit({ kind: "count_loss", instance: "i-1", loss: "forced", obligations: 3, seal: "assumed" }),
  distrust: commit({ kind: "set_trust", instance: "i-1", incarnation: 1, from: "ok", to: "suspect" }),
  fence: commit({ kind: "pass_writer", ordinal: 0, after: epoch(0, 1), to: null }),
  reasons: commit({ kind: "set_reasons", reasons: [{ subject: "", reason: { code: "nothing_to_do", params: {} }, since: NOON }] }),
  renew: (store) => renew(store, { ...HOLDER, epoch: epoch(0, 1) }),
  renew_first: (store) => renew(store, { ...HOLDER, epoch: null }),
  freeze: (store, _, who) => store.setFreeze(POOL, { until: NOON + 9, why: "audit", by: who }),
  freeze_new: (store, _, who) => store.setFreeze("shop/new", { until: NOON + 9, why: "audit", by: who }),
  notice: (store, _, who) => store.saveNotice(notice(`n-${who}`, { dedupeKey: "same" })),
  notice_id: (store, _, who) => store.saveNotice(notice("n-2", { dedupeKey: who })),
  settle: (store) => store.settleNotice("n-1", "matched"),
  register: (store) => store.registerGateway("g-2", NOON + 1),
  remove: (store) => store.removeGateway("g-1"),
  collect: (store) => store.collect(NOON + 1),
  secret: (store, _, who) => store.sharedSecret("key", who),
  recover: (store, _, who) => store.recover({ above: 3, at: NOON + 1, why: "test", by: who }),
  read_pool: (store) => store.readPool(POOL),
  read_epochs: async (store) => [...(await store.poolEpochs())],
  read_era: (store) => store.readEra(),
};
