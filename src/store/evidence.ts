/** Evidence: one row per instance and class of loss, and of members one per pod and class; the first write wins and nothing changes it (I3). */
import { sql, type Kysely, type Selectable } from "kysely";
import type { Instant } from "../kernel/clock.ts";
import { epoch, epochParts } from "../kernel/epoch.ts";
import type { Evidence, EvidenceDraft } from "../model/evidence.ts";
import type { Loss } from "../model/phase.ts";
import { storeConflict, type Authority } from "./port.ts";
import { prepare } from "./prepared.ts";
import type { EvidenceTable, Schema } from "./schema.ts";

type EvidenceRow = Selectable<EvidenceTable>;

export class EvidenceRepository {
  readonly #db: Kysely<Schema>;
  readonly #queries: Queries;
  readonly #ofMembers: Queries;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
    this.#queries = queriesOf(db, "evidence");
    this.#ofMembers = queriesOf(db, "member_evidence");
  }

  /** Does nothing when evidence of this class is there for the instance, or for this member of it; conflict when the id is there for another. */
  async record({ pool, epoch: authorityEpoch }: Authority, id: string, draft: EvidenceDraft, now: Instant): Promise<void> {
    const { era, counter } = epochParts(authorityEpoch);
    const queries = draft.isOfMember === true ? this.#ofMembers : this.#queries;
    const inserted = await queries.insert.run(this.#db, {
      id,
      pool,
      instance: draft.instance,
      incarnation: draft.incarnation,
      loss: draft.loss,
      reason: draft.reason,
      pod_name: draft.podName,
      pod_uid: draft.podUid,
      node_name: draft.nodeName,
      node_uid: draft.nodeUid,
      node_claim_name: draft.nodeClaimName,
      node_claim_uid: draft.nodeClaimUid,
      deadline: draft.deadline,
      notice_id: draft.noticeId,
      first_seen: now,
      epoch_era: era,
      epoch_counter: counter,
    });
    if (inserted === 1) return;
    // Looked at afterwards: where others write too, what was looked at before may not be there any more.
    const [known] = await queries.find.rows(this.#db, { id });
    const isOther = (of: EvidenceRow) =>
      of.instance !== draft.instance || of.loss !== draft.loss || (draft.isOfMember === true && of.pod_uid !== draft.podUid);
    if (known !== undefined && isOther(known))
      throw storeConflict(`evidence ${id} is about something else`, `${known.instance} ${known.loss}`, `${draft.instance} ${draft.loss}`);
  }

  async has(instance: string, loss: Loss): Promise<boolean> {
    return (await this.#queries.ofClass.rows(this.#db, { instance, loss })).length > 0;
  }

  async listLiving(pool: string): Promise<Evidence[]> {
    const ofInstances = await this.#queries.living.rows(this.#db, { pool });
    return [...ofInstances.map(toEvidence), ...(await this.#ofMembers.living.rows(this.#db, { pool })).map(toMemberEvidence)];
  }

  async list(pool: string, limit: number): Promise<Evidence[]> {
    const ofInstances = (await this.#queries.newest.rows(this.#db, { pool, limit })).map(toEvidence);
    const ofMembers = (await this.#ofMembers.newest.rows(this.#db, { pool, limit })).map(toMemberEvidence);
    if (ofMembers.length === 0) return ofInstances;
    return [...ofInstances, ...ofMembers].toSorted((a, b) => b.firstSeen - a.firstSeen).slice(0, limit);
  }
}

type Queries = ReturnType<typeof queriesOf>;

/** Both tables have the same columns. */
function queriesOf(db: Kysely<Schema>, name: "evidence" | "member_evidence") {
  const table = name as "evidence";
  return {
    find: prepare<{ id: string }, EvidenceRow>((p) => db.selectFrom(table).selectAll().where("id", "=", p.id)),
    ofClass: prepare<{ instance: string; loss: Loss }, { id: string }>((p) =>
      db.selectFrom(table).select("id").where("instance", "=", p.instance).where("loss", "=", p.loss),
    ),
    insert: prepare<Omit<EvidenceRow, "seq">>((p) =>
      db
        .insertInto(table)
        .values({
          id: p.id,
          pool: p.pool,
          instance: p.instance,
          incarnation: p.incarnation,
          loss: p.loss,
          reason: p.reason,
          pod_name: p.pod_name,
          pod_uid: p.pod_uid,
          node_name: p.node_name,
          node_uid: p.node_uid,
          node_claim_name: p.node_claim_name,
          node_claim_uid: p.node_claim_uid,
          deadline: p.deadline,
          notice_id: p.notice_id,
          first_seen: p.first_seen,
          epoch_era: p.epoch_era,
          epoch_counter: p.epoch_counter,
        })
        .onConflict((conflict) => conflict.doNothing()),
    ),
    // From the living instances to their evidence, in their order: else SQLite reads the whole history of the pool.
    living: prepare<{ pool: string }, EvidenceRow>((p) =>
      db
        .selectFrom("instances")
        .innerJoin(`${table} as recorded`, "recorded.instance", "instances.id")
        .selectAll("recorded")
        .where("instances.pool", "=", p.pool)
        .where(sql<boolean>`instances.phase <> 'deleted'`)
        .orderBy("instances.seq")
        .orderBy("recorded.seq"),
    ),
    newest: prepare<{ pool: string; limit: number }, EvidenceRow>((p) =>
      db.selectFrom(table).selectAll().where("pool", "=", p.pool).orderBy("seq", "desc").limit(p.limit),
    ),
  };
}

function toEvidence(row: EvidenceRow): Evidence {
  return {
    id: row.id,
    pool: row.pool,
    instance: row.instance,
    incarnation: row.incarnation,
    loss: row.loss,
    reason: row.reason,
    podName: row.pod_name,
    podUid: row.pod_uid,
    nodeName: row.node_name,
    nodeUid: row.node_uid,
    nodeClaimName: row.node_claim_name,
    nodeClaimUid: row.node_claim_uid,
    deadline: row.deadline,
    noticeId: row.notice_id,
    firstSeen: row.first_seen,
    authorityEpoch: epoch(row.epoch_era, row.epoch_counter),
  };
}

function toMemberEvidence(row: EvidenceRow): Evidence {
  return { ...toEvidence(row), isOfMember: true };
}
