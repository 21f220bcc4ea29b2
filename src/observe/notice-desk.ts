/**
 * Where notices arrive and stay until their machine is known: durable before they are acknowledged, matched to nodes again whenever either changes.
 */
import type { Clock, Timer } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import { parseEventBridge, EVENTBRIDGE } from "../notices/eventbridge/parse.ts";
import { type Notice, type Reception, recordOfNotice } from "../notices/notice.ts";
import { receiveNotice } from "../notices/receive.ts";
import type { NodeFinding } from "../plan/snapshot.ts";
import type { NoticeRecord, Store } from "../store/port.ts";
import { type Correlation, correlate, machineIdOf } from "./correlate.ts";
import type { World } from "./world.ts";

/** Notices older than this no longer announce anything. */
const OPEN_FOR_MS = 24 * 3_600_000;
/** More open notices than this are not taken: each is compared with every node, and the sender tries again. */
const MAX_OPEN = 10_000;
/** Machines that went are remembered up to this many. */
const MAX_DEPARTED = 10_000;
const ENDED = new Set(["matched", "node_gone", "passed", "other_cluster", "duplicate", "ignored"]);

export interface NoticeDeskOptions {
  readonly store: Store;
  readonly world: Pick<World, "nodes" | "trouble">;
  readonly clock: Clock;
  readonly ids: Ids;
  /** How long a spot warning leads; the clouds' 120 s unless a demo says otherwise. */
  readonly spotLeadMs?: number;
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
  readonly #open = new Map<string, NoticeRecord>();
  readonly #departed = new Set<string>();
  #findings: ReadonlyMap<string, readonly NodeFinding[]> = new Map();
  #timer: Timer | undefined;

  constructor(options: NoticeDeskOptions) {
    this.#options = options;
    options.world.nodes.onChange(({ before, gone }) => {
      const machine = before && machineIdOf(before.spec.providerID);
      if (machine !== undefined && gone) this.#departed.add(machine);
      if (this.#departed.size > MAX_DEPARTED) for (const oldest of this.#departed) if (this.#departed.delete(oldest)) break;
      if (this.#open.size > 0) this.#match();
    });
  }

  async start(): Promise<void> {
    const since = this.#options.clock.now() - OPEN_FOR_MS;
    for (const notice of await this.#options.store.openNotices(since)) this.#keep(notice);
    this.#match();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** By node UID: what open notices say. */
  findings(): ReadonlyMap<string, readonly NodeFinding[]> {
    return this.#findings;
  }

  /** Durable when it settles. Throws NoticeError when the message cannot be understood, and the store's error when it cannot be kept. */
  async receive(source: string, body: string): Promise<Receipt> {
    const { store, clock, ids } = this.#options;
    if (this.#open.size >= MAX_OPEN)
      throw new RelevoError("notices_full", "too many notices wait for their machines", {
        class: "retryable",
        found: this.#open.size,
        allowed: `${MAX_OPEN} at once`,
      });
    const { notice, outcome } = await receiveNotice(body, { parse: this.#parserOf(source), store, clock, ids });
    this.#options.onOutcome(source, outcome);
    if (outcome === "received") {
      this.#keep(recordOfNotice(notice));
      this.#match();
      this.#options.onChange();
    }
    const list = (wanted: string) => (outcome === wanted ? [notice.id] : []);
    return { accepted: list("received"), duplicates: list("duplicate"), ignored: list("ignored") };
  }

  /** Its body is in the store and nothing here reads it. */
  #keep(notice: NoticeRecord): void {
    this.#open.set(notice.id, { ...notice, body: "" });
  }

  #parserOf(source: string): (body: string, reception: Reception) => Notice {
    const { spotLeadMs } = this.#options;
    if (source === EVENTBRIDGE)
      return (body, reception) => parseEventBridge(body, reception, spotLeadMs === undefined ? {} : { leadMs: spotLeadMs });
    throw new RelevoError("notice_source_unknown", `there is no notice source ${source}`, { found: source, allowed: EVENTBRIDGE });
  }

  #match(): void {
    const { world, clock } = this.#options;
    const now = clock.now();
    const correlation = correlate({
      notices: [...this.#open.values()],
      nodes: world.nodes.list(),
      nodesComplete: world.nodes.synced() && world.trouble() === undefined,
      departedMachines: this.#departed,
      now,
    });
    this.#findings = correlation.findings;
    this.#settle(correlation);
    this.#timer?.cancel();
    if (correlation.nextLookAt !== null) this.#timer = clock.after(Math.max(1, correlation.nextLookAt - now), () => this.#match());
  }

  #settle({ settlements }: Correlation): void {
    for (const { noticeId, outcome } of settlements) {
      const notice = this.#open.get(noticeId);
      if (!notice) continue;
      if (ENDED.has(outcome)) this.#open.delete(noticeId);
      else this.#open.set(noticeId, { ...notice, outcome });
      this.#options.onOutcome(notice.source, outcome);
      // The outcome is for people to read; a write that fails is made up for by the next match after a restart.
      void this.#options.store
        .settleNotice(noticeId, outcome)
        .catch((error: unknown) => this.#options.log("warn", "a notice's outcome could not be written", { noticeId, outcome, error }));
    }
  }
}
