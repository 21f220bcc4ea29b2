/** Notices as received, each once per source. */
import { createHash } from "node:crypto";
import { sql, type Kysely, type Selectable } from "kysely";
import type { Instant } from "../kernel/clock.ts";
import { MAX_OPEN_NOTICES, storeConflict, type NoticeRecord, type OpenNoticeRows } from "./port.ts";
import { prepare } from "./prepared.ts";
import type { NoticeTable, Schema } from "./schema.ts";

/** 64 KiB of UTF-8; what is longer is cut and says so. */
export const MAX_NOTICE_BYTES = 64 * 1024;
const MAX_KEY_BYTES = 512;
const CUT_MARK = "…[cut]";

/** Outcomes after which no evidence can come from a notice any more; every other, `unknown_machine` above all, may still find its machine. */
export const NOTICE_ENDS = [
  "matched",
  "other_cluster",
  "duplicate",
  "malformed",
  "node_gone",
  "passed",
  "withdrawn",
  "ignored",
  "unknown_kind",
] as const;

type NoticeRow = Selectable<NoticeTable>;

export class NoticeRepository {
  readonly #db: Kysely<Schema>;
  readonly #queries: ReturnType<typeof queriesOf>;

  constructor(db: Kysely<Schema>) {
    this.#db = db;
    this.#queries = queriesOf(db);
  }

  /** False when its source sent the same before; conflict when the id is another's. */
  async save(notice: NoticeRecord): Promise<boolean> {
    const inserted = await this.#queries.insert.run(this.#db, {
      id: notice.id,
      source: notice.source,
      dedupe_key: indexable(notice.dedupeKey),
      received_at: notice.receivedAt,
      body: cutBody(notice.body),
      outcome: notice.outcome,
      machine_ids: JSON.stringify(notice.machineIds),
      deadline: notice.deadline,
      reason: notice.reason,
    });
    if (inserted === 1) return true;
    const [known] = await this.#queries.find.rows(this.#db, { id: notice.id });
    if (known !== undefined && (known.source !== notice.source || known.dedupe_key !== indexable(notice.dedupeKey)))
      throw storeConflict(`notice ${notice.id} is there already`, `${known.source} ${known.dedupe_key}`, "an id that was never used");
    return false;
  }

  async settle(id: string, outcome: string): Promise<void> {
    const changed = await this.#queries.settle.run(this.#db, { id, outcome });
    if (changed === 0) throw storeConflict(`notice ${id} is not there`, null, "a notice that was saved");
  }

  async list(limit: number): Promise<NoticeRecord[]> {
    return (await this.#queries.newest.rows(this.#db, { limit })).map(toNotice);
  }

  /** Oldest first. */
  async listOpen(since: Instant): Promise<NoticeRecord[]> {
    return (await this.#queries.open.rows(this.#db, { since })).map(toNotice).reverse();
  }

  /** What is not known came late: rows are read from the first of them on, which is none of them most of the time. */
  async listOpenBeside(since: Instant, known: ReadonlySet<string>): Promise<OpenNoticeRows> {
    const open = await this.#queries.openIds.rows(this.#db, { since });
    const ids = open.map(({ id }) => id).reverse();
    const times = open.flatMap(({ id, received_at }) => (known.has(id) ? [] : [received_at]));
    const first = times.at(-1);
    if (first === undefined) return { ids, unknown: [] };
    return { ids, unknown: (await this.listOpen(first)).filter(({ id }) => !known.has(id)) };
  }
}

function queriesOf(db: Kysely<Schema>) {
  const all = db.selectFrom("notices").selectAll();
  const openOnes = ({ since }: { readonly since: number }) =>
    db
      .selectFrom("notices")
      .where("received_at", ">=", since)
      .where("outcome", "not in", [...NOTICE_ENDS])
      .orderBy("received_at", "desc")
      .orderBy("seq", "desc")
      .limit(sql.lit(MAX_OPEN_NOTICES));
  return {
    find: prepare<{ id: string }, NoticeRow>((p) => all.where("id", "=", p.id)),
    newest: prepare<{ limit: number }, NoticeRow>((p) => all.orderBy("received_at", "desc").orderBy("seq", "desc").limit(p.limit)),
    open: prepare<{ since: number }, NoticeRow>((p) => openOnes(p).selectAll()),
    openIds: prepare<{ since: number }, Pick<NoticeRow, "id" | "received_at">>((p) => openOnes(p).select(["id", "received_at"])),
    settle: prepare<{ id: string; outcome: string }>((p) => db.updateTable("notices").set({ outcome: p.outcome }).where("id", "=", p.id)),
    insert: prepare<Omit<NoticeRow, "seq">>((p) =>
      db
        .insertInto("notices")
        .values({
          id: p.id,
          source: p.source,
          dedupe_key: p.dedupe_key,
          received_at: p.received_at,
          body: p.body,
          outcome: p.outcome,
          machine_ids: p.machine_ids,
          deadline: p.deadline,
          reason: p.reason,
        })
        .onConflict((conflict) => conflict.doNothing()),
    ),
  };
}

/** An index of PostgreSQL takes up to 2,700 bytes: a key that a stranger made longer is known by its hash. */
function indexable(key: string): string {
  return Buffer.byteLength(key) <= MAX_KEY_BYTES ? withoutZero(key) : `sha256:${createHash("sha256").update(key).digest("hex")}`;
}

/** PostgreSQL keeps no zero byte: a message that holds one would be refused for ever. */
function withoutZero(text: string): string {
  return text.replaceAll("\0", "\u{fffd}");
}

/** Never in the middle of a character. */
function cutBody(text: string): string {
  const body = withoutZero(text);
  const bytes = Buffer.from(body, "utf8");
  if (bytes.length <= MAX_NOTICE_BYTES) return body;
  let end = MAX_NOTICE_BYTES - Buffer.byteLength(CUT_MARK);
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end) + CUT_MARK;
}

function toNotice(row: NoticeRow): NoticeRecord {
  return {
    id: row.id,
    source: row.source,
    dedupeKey: row.dedupe_key,
    receivedAt: row.received_at,
    body: row.body,
    outcome: row.outcome,
    machineIds: JSON.parse(row.machine_ids) as string[],
    deadline: row.deadline,
    reason: row.reason,
  };
}
