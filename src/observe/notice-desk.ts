/**
 * Where notices arrive and stay until their machine is known: durable before they are acknowledged, matched to nodes again whenever either changes.
 *
 * 1. A look costs what changed: the notices that are tied to the changed machine, and those tied to them. All are looked at only when time has changed
 *    something, at most once a second.
 * 2. What other replicas took is found by reading the store again, where several share it: the store is what counts, and an outcome that could not be written
 *    is written then. So is what was kept here without this desk hearing of it: a store that fails may have kept it, and what the sender repeats is a duplicate.
 */
import type { Clock, Timer } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import type { KubeNode } from "../kube/types.ts";
import { machineIdOf } from "../notices/machine.ts";
import { type NoticeError, recordOfNotice, subjectOf } from "../notices/notice.ts";
import { type Received, receiveNotice } from "../notices/receive.ts";
import { findSource, NOTICE_SOURCES } from "../notices/registry.ts";
import type { Announcement, NoticeMessage, NoticeSource } from "../notices/source.ts";
import type { NodeFinding } from "../plan/snapshot.ts";
import { isStoreUnavailable, MAX_OPEN_NOTICES, type NoticeRecord, type OpenNoticeRows, type Store } from "../store/port.ts";
import { type Correlation, correlate, type NodeIdentity } from "./correlate.ts";
import { OpenNotices } from "./open-notices.ts";
import type { World } from "./world.ts";

/** Notices older than this are not read again: as long as they are kept. */
const READ_BACK_MS = 7 * 24 * 3_600_000;
/** Machines that went, and subjects of notices, are remembered up to this many. */
const MAX_REMEMBERED = 10_000;
const LOOK_AT_ALL_EVERY_MS = 1_000;
/** Until the store is read again when it may have what is not known here. */
const REREAD_AFTER_MS = 1_000;
const TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING";
const ENDED = new Set(["matched", "node_gone", "passed", "withdrawn", "other_cluster", "duplicate", "ignored"]);

export interface NoticeDeskOptions {
  readonly store: Store;
  readonly world: Pick<World, "nodes" | "nodeClaims" | "trouble">;
  readonly clock: Clock;
  readonly ids: Ids;
  /** How long a spot warning leads; the clouds' 120 s unless a demo says otherwise. */
  readonly spotLeadMs?: number;
  /** How often what other replicas took is read; absent: nobody else writes to the store. */
  readonly rereadEveryMs?: number;
  readonly onChange: () => void;
  readonly onOutcome: (source: string, outcome: string) => void;
  readonly log: (level: "debug" | "info" | "warn" | "error", message: string, fields: Readonly<Record<string, unknown>>) => void;
}

export interface Receipt {
  readonly accepted: readonly string[];
  readonly duplicates: readonly string[];
  readonly ignored: readonly string[];
}

export class NoticeDesk {
  readonly #options: NoticeDeskOptions;
  readonly #open = new OpenNotices();
  readonly #departed = new Set<string>();
  readonly #machineOfDeparted = new Map<string, string>();
  /** Of notices that meant machines of this cluster, also when they are over. */
  readonly #ourSubjects = new Set<string>();
  /** Whose end is being written. */
  readonly #ending = new Set<string>();
  #findings: ReadonlyMap<string, readonly NodeFinding[]> = new Map();
  #allLookedAt = Number.NEGATIVE_INFINITY;
  #nextLookAt = Number.POSITIVE_INFINITY;
  #lookTimer: Timer | undefined;
  #rereadTimer: Timer | undefined;
  #isStopped = false;

  constructor(options: NoticeDeskOptions) {
    this.#options = options;
    options.world.nodes.onChange(({ before, after, gone }) => {
      const machines = [before, after].flatMap((node) => (node && machineIdOf(node.spec.providerID)) ?? []);
      if (before !== undefined && gone) this.#rememberDeparted(machineIdOf(before.spec.providerID), before.metadata.uid);
      const uids = [before, after].flatMap((node) => node?.metadata.uid ?? []);
      if (this.#open.size > 0) this.#look(this.#open.ofMachines(machines), machines, uids);
    });
  }

  async start(): Promise<void> {
    for (const notice of await this.#readOpen()) this.#keep(notice);
    this.#lookAtAll();
    this.#rereadLater();
  }

  stop(): void {
    this.#isStopped = true;
    this.#lookTimer?.cancel();
    this.#rereadTimer?.cancel();
  }

  /** By node UID: what open notices say. The same map as long as they say the same. */
  findings(): ReadonlyMap<string, readonly NodeFinding[]> {
    return this.#findings;
  }

  /** Notices whose machine may still be here; only lifecycle actions have their body. */
  open(): readonly NoticeRecord[] {
    return [...this.#open.all()];
  }

  /** True when the machine has, is about to have or lately had a node in this cluster. */
  knows(machineId: string): boolean {
    const { nodes, nodeClaims } = this.#options.world;
    return (
      this.#departed.has(machineId) || nodes.byIndex("machine", machineId).length > 0 || nodeClaims.byIndex("machine", machineId).length > 0
    );
  }

  /** True when what this withdrawal takes back was of a machine of this cluster, or when it takes nothing back. */
  knowsSubject(withdrawal: Pick<NoticeRecord, "source" | "dedupeKey">): boolean {
    const subject = subjectOf(withdrawal);
    return subject === undefined || this.#ourSubjects.has(subject);
  }

  /** Of a node that is here or lately was. */
  machineOf(nodeUid: string): string | undefined {
    const [node] = this.#options.world.nodes.byIndex("uid", nodeUid);
    return node ? machineIdOf(node.spec.providerID) : this.#machineOfDeparted.get(nodeUid);
  }

  /**
   * Durable when it settles. Throws NoticeError when the message cannot be understood, the store's error when it cannot be kept, and `machine_not_yours` when
   * it comes from `node` and is about another one's machine (retryable as long as that node is not seen here).
   */
  async receive(source: string, message: NoticeMessage, node?: string): Promise<Receipt> {
    const received = await this.take(sourceOf(source), message, node);
    const list = (...wanted: readonly string[]) => received.flatMap(({ notice, outcome }) => (wanted.includes(outcome) ? [notice.id] : []));
    return { accepted: list("received"), duplicates: list("duplicate"), ignored: list("ignored", "unknown_kind") };
  }

  /** As `receive`, and says of each what it is. */
  async take(source: NoticeSource, message: NoticeMessage, node?: string): Promise<readonly Received[]> {
    const { store, clock, ids, spotLeadMs } = this.#options;
    // More would not be read back after a restart, and what is acknowledged must be.
    if (this.#open.size >= MAX_OPEN_NOTICES)
      throw new RelevoError("notices_full", "too many notices wait for their machines", {
        class: "retryable",
        found: this.#open.size,
        allowed: `${MAX_OPEN_NOTICES} at once`,
      });
    const received = await receiveNotice(source, message, {
      store,
      clock,
      ids,
      ...(spotLeadMs === undefined ? {} : { spotLeadMs }),
      ...(node === undefined ? {} : { assertMay: (said) => this.#assertOwnMachine(node, said) }),
    }).catch((error: unknown) => {
      if (isStoreUnavailable(error)) this.#rereadLater(REREAD_AFTER_MS);
      throw error;
    });
    let isNews = false;
    for (const { notice, outcome } of received) {
      this.#options.onOutcome(source.name, outcome);
      if (outcome === "duplicate") this.#rereadLater(REREAD_AFTER_MS);
      if (outcome !== "received") continue;
      const record = recordOfNotice(notice);
      this.#keep(record);
      this.#lookAround(record);
      isNews = true;
    }
    if (isNews) this.#options.onChange();
    return received;
  }

  /** Whoever has the token of one node's agent must not be able to clear another node. */
  #assertOwnMachine(node: string, said: readonly Announcement[]): void {
    const known = this.#options.world.nodes.get(undefined, node);
    const machine = known && machineIdOf(known.spec.providerID);
    const foreign = said.flatMap(({ machineIds }) => machineIds).find((each) => each !== machine);
    if (foreign === undefined) return;
    throw new RelevoError("machine_not_yours", `The agent of node ${node} may not speak for another machine.`, {
      class: machine === undefined ? "retryable" : "terminal",
      found: foreign,
      allowed: machine ?? "none yet: the node is not known here, or has no providerID",
    });
  }

  /** Writes down what nobody can understand, once per `key`, so that people can see it. */
  async keepMalformed(source: NoticeSource, key: string, body: string, error: NoticeError): Promise<void> {
    const { store, clock, ids, onOutcome, log } = this.#options;
    const isNew = await store.saveNotice({
      id: ids.next("notice"),
      source: source.name,
      dedupeKey: `malformed ${key}`,
      receivedAt: clock.now(),
      body,
      outcome: "malformed",
      machineIds: [],
      deadline: null,
      reason: null,
    });
    if (!isNew) return;
    onOutcome(source.name, "malformed");
    log("warn", "a message cannot be understood and is left where it was", {
      source: source.name,
      key,
      field: error.path,
      problem: error.message,
    });
  }

  /** The body is in the store; only that of a lifecycle action is read again. */
  #keep(notice: NoticeRecord): void {
    this.#open.put(notice.body.includes(TERMINATING) ? notice : { ...notice, body: "" });
  }

  #rememberDeparted(machine: string | undefined, nodeUid: string): void {
    if (machine === undefined) return;
    this.#departed.add(machine);
    this.#machineOfDeparted.set(nodeUid, machine);
    for (const kept of [this.#departed, this.#machineOfDeparted]) bound(kept);
  }

  #rememberSubject(notice: NoticeRecord): void {
    const subject = subjectOf(notice);
    if (subject === undefined || !notice.machineIds.some((machine) => this.knows(machine))) return;
    this.#ourSubjects.add(subject);
    bound(this.#ourSubjects);
  }

  async #readOpen(): Promise<readonly NoticeRecord[]> {
    return await this.#options.store.openNotices(this.#options.clock.now() - READ_BACK_MS);
  }

  // ---- what other replicas took

  /** The next one that is due is enough. */
  #rereadLater(inMs = this.#options.rereadEveryMs): void {
    if (this.#isStopped || inMs === undefined || this.#rereadTimer !== undefined) return;
    this.#rereadTimer = this.#options.clock.after(inMs, () => void this.#rereadNow());
  }

  async #rereadNow(): Promise<void> {
    const isRead = await this.#reread();
    this.#rereadTimer = undefined;
    if (isRead) this.#rereadLater();
    else this.#rereadLater(REREAD_AFTER_MS);
  }

  /** False when the store could not be read. */
  async #reread(): Promise<boolean> {
    const { store, clock, log } = this.#options;
    const known = new Set([...this.#open.all()].map(({ id }) => id));
    let stored: OpenNoticeRows;
    try {
      stored = await store.openNoticesBeside(clock.now() - READ_BACK_MS, new Set([...known, ...this.#ending]));
    } catch (error) {
      log("debug", "the open notices could not be read again", { error });
      return false;
    }
    const before = this.#findings;
    for (const notice of stored.unknown) {
      if (this.#open.get(notice.id) || this.#ending.has(notice.id)) continue;
      this.#keep(notice);
      this.#lookAround(notice);
    }
    // What was taken here while the store was read is not in what was read; what is not in a list that was cut may be open all the same.
    const inStore = new Set(stored.ids);
    if (stored.ids.length < MAX_OPEN_NOTICES)
      for (const notice of [...this.#open.all()]) if (known.has(notice.id) && !inStore.has(notice.id)) this.#forget(notice);
    if (this.#findings !== before) this.#options.onChange();
    return true;
  }

  /** Another replica ended it. */
  #forget(notice: NoticeRecord): void {
    const around = this.#open.around(notice);
    this.#open.remove(notice.id);
    this.#look(
      around.filter(({ id }) => id !== notice.id),
      notice.machineIds,
    );
  }

  // ---- matching

  #lookAround(notice: NoticeRecord): void {
    const around = this.#open.around(notice);
    const machines = new Set(around.flatMap(({ machineIds }) => machineIds));
    this.#look(this.#open.ofMachines(machines).concat(around.filter(({ machineIds }) => machineIds.length === 0)), machines);
  }

  #lookAtAll(): void {
    this.#allLookedAt = this.#options.clock.now();
    this.#nextLookAt = Number.POSITIVE_INFINITY;
    const notices = [...this.#open.all()];
    this.#look(notices, new Set(notices.flatMap(({ machineIds }) => machineIds)), this.#findings.keys());
  }

  /** `notices` hold all that name one of `machines`; of their nodes, and of those of `uids`, the findings are replaced. */
  #look(notices: readonly NoticeRecord[], machines: Iterable<string>, uids: Iterable<string> = []): void {
    const { world, clock } = this.#options;
    const judged = new Set([...machines].flatMap((machine) => this.#nodesOf(machine)).map(({ metadata }) => metadata.uid));
    for (const uid of uids) judged.add(uid);
    if (notices.length === 0 && judged.size === 0) return;
    const now = clock.now();
    const named = new Set(notices.flatMap(({ machineIds }) => machineIds));
    const correlation = correlate({
      notices,
      nodes: [...named].flatMap((machine) => this.#nodesOf(machine)),
      nodesComplete: world.nodes.synced() && world.trouble() === undefined,
      departedMachines: this.#departed,
      now,
    });
    this.#replaceFindings(judged, correlation.findings);
    this.#settle(correlation);
    this.#lookAgainAt(correlation.nextLookAt, now);
  }

  #nodesOf(machine: string): readonly (KubeNode & NodeIdentity)[] {
    return this.#options.world.nodes.byIndex("machine", machine);
  }

  #replaceFindings(judged: ReadonlySet<string>, found: ReadonlyMap<string, readonly NodeFinding[]>): void {
    const changed = [...judged].filter((uid) => !areSame(this.#findings.get(uid), found.get(uid)));
    if (changed.length === 0) return;
    const findings = new Map(this.#findings);
    for (const uid of changed) {
      const now = found.get(uid);
      if (now === undefined) findings.delete(uid);
      else findings.set(uid, now);
    }
    this.#findings = findings;
  }

  #lookAgainAt(at: number | null, now: number): void {
    if (at === null || at >= this.#nextLookAt) return;
    this.#nextLookAt = at;
    this.#lookTimer?.cancel();
    const inMs = Math.max(1, at - now, this.#allLookedAt + LOOK_AT_ALL_EVERY_MS - now);
    this.#lookTimer = this.#options.clock.after(inMs, () => this.#timeCame());
  }

  #timeCame(): void {
    const before = this.#findings;
    this.#lookAtAll();
    if (this.#findings !== before) this.#options.onChange();
  }

  #settle({ settlements }: Correlation): void {
    for (const { noticeId, outcome } of settlements) {
      const notice = this.#open.get(noticeId);
      if (!notice) continue;
      this.#rememberSubject(notice);
      if (ENDED.has(outcome)) {
        this.#open.remove(noticeId);
        this.#ending.add(noticeId);
      } else this.#open.put({ ...notice, outcome });
      this.#options.onOutcome(notice.source, outcome);
      // The outcome is for people to read; a write that fails is made up for by the next look after a restart.
      void this.#options.store
        .settleNotice(noticeId, outcome)
        .catch((error: unknown) => this.#options.log("warn", "a notice's outcome could not be written", { noticeId, outcome, error }))
        .finally(() => this.#ending.delete(noticeId));
    }
  }
}

function bound(kept: Set<string> | Map<string, string>): void {
  if (kept.size > MAX_REMEMBERED) for (const oldest of kept.keys()) if (kept.delete(oldest)) break;
}

/** Throws `notice_source_unknown`. */
function sourceOf(name: string): NoticeSource {
  const source = findSource(name);
  if (source) return source;
  throw new RelevoError("notice_source_unknown", `there is no notice source ${name}`, {
    found: name,
    allowed: NOTICE_SOURCES.map((each) => each.name).join(", "),
  });
}

function areSame(a: readonly NodeFinding[] | undefined, b: readonly NodeFinding[] | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return (
    a.length === b.length &&
    a.every(({ reason, deadline, noticeId }, at) => {
      const other = b[at];
      return reason === other?.reason && deadline === other.deadline && noticeId === other.noticeId;
    })
  );
}
