/**
 * A cluster under a virtual clock: a coordinator, workers and queries that run for a time. A killed worker is noticed after `detectMs`; without retries its
 * queries fail then, with retries they go on elsewhere.
 */
import { RelevoError } from "../../../kernel/errors.ts";
import type { VirtualClock } from "../../../kernel/virtual-clock.ts";
import { probeQuery } from "../own-query.ts";
import type { ExchangeListing, GateEngine, GateTask, Killer, RunningStatement, StatementPage } from "../ports.ts";
import { LOSS } from "./records.ts";

export interface FakeOptions {
  readonly clock: VirtualClock;
  readonly workers?: readonly string[];
  /** Ready, and unknown to the coordinator. */
  readonly unannounced?: readonly string[];
  readonly detectMs?: number;
  readonly queryMs?: number | ((sql: string) => number);
  readonly rows?: readonly (readonly unknown[])[];
  /** Where the tasks of the n-th query of a run are, by its policy; all workers when absent. */
  readonly tasksOn?: (policy: string, number: number) => readonly string[] | undefined;
  /** What becomes of a query that had tasks on the killed worker. */
  readonly fate?: (policy: string) => "fails" | "survives" | "hangs" | "wrong";
  readonly restart?: "comes-back" | "stays-away";
  readonly killWorks?: boolean;
  readonly restartsCoordinator?: boolean;
}

interface Query {
  readonly id: string;
  readonly sql: string;
  readonly policy: string;
  readonly session: Readonly<Record<string, string>>;
  readonly startedAt: number;
  readonly on: readonly string[];
  hitAt: number | undefined;
  isCancelled: boolean;
}

export class FakeCluster {
  readonly #options: FakeOptions;
  readonly #queries = new Map<string, Query>();
  /** When each was killed. */
  readonly #dead = new Map<string, number>();
  readonly told: string[] = [];
  readonly restarted: string[] = [];
  #perPolicy = new Map<string, number>();
  #boot = 0;

  constructor(options: FakeOptions) {
    this.#options = options;
  }

  get queries(): readonly Query[] {
    return [...this.#queries.values()];
  }

  get engine(): GateEngine {
    return {
      info: async () => ({
        bootId: `c1/boot${this.#options.restartsCoordinator === true ? this.#boot++ : 0}`,
        version: "483",
        environment: "lab",
      }),
      nodes: async () => [
        { nodeId: "c1", uri: "http://c1:8080", state: "active", isCoordinator: true },
        ...this.#announced().map((nodeId) => ({ nodeId, uri: `http://${nodeId}:8080`, state: "active", isCoordinator: false })),
      ],
      tasks: async (ids) => ids.flatMap((id) => this.#tasksOf(id)),
      query: async (id) => {
        const query = this.#query(id);
        return { state: "RUNNING", retryPolicy: query.policy, session: query.session };
      },
      start: async (sql, session) => this.#start(sql, session),
    };
  }

  get killer(): Killer {
    return {
      how: "a fake kill",
      kill: async ({ nodeId }) => {
        if (this.#options.killWorks === false) return "said yes";
        this.#dead.set(nodeId, this.#now);
        for (const query of this.#queries.values()) if (!this.#hasEnded(query) && query.on.includes(nodeId)) query.hitAt = this.#now;
        return `process of ${nodeId}`;
      },
      isGone: async ({ nodeId }) => this.#dead.has(nodeId),
      restart: async ({ nodeId }) => {
        this.restarted.push(nodeId);
        if (this.#options.restart !== "stays-away") this.#dead.delete(nodeId);
      },
    };
  }

  get listing(): ExchangeListing {
    return {
      location: "/exchange",
      list: async (id) => {
        const query = this.#query(id);
        const isThere = query.policy === "TASK" && !this.#hasEnded(query) && this.#now - query.startedAt > 2_000;
        return isThere ? [{ path: `/exchange/ab.${id}.external-exchange-0.0/0/0_0.data`, bytes: 100 }] : [];
      },
    };
  }

  get #now(): number {
    return this.#options.clock.monotonic();
  }

  #workers(): readonly string[] {
    return this.#options.workers ?? ["w1", "w2"];
  }

  #announced(): readonly string[] {
    const detectMs = this.#options.detectMs ?? 11_000;
    return this.#workers().filter((nodeId) => this.#now < (this.#dead.get(nodeId) ?? Number.POSITIVE_INFINITY) + detectMs);
  }

  #query(id: string): Query {
    const query = this.#queries.get(id);
    if (query === undefined) throw new RelevoError("fake_unknown", `no query ${id}`);
    return query;
  }

  #start(sql: string, session: Readonly<Record<string, string>>): RunningStatement {
    const policy = session.retry_policy ?? "NONE";
    const number = (this.#perPolicy.get(policy) ?? 0) + 1;
    this.#perPolicy.set(policy, number);
    const id = `20300101_000000_${String(this.#queries.size).padStart(5, "0")}_ab12c`;
    const on = this.#options.tasksOn?.(policy, number) ?? this.#workers();
    const query: Query = { id, sql, policy, session, startedAt: this.#now, on, hitAt: undefined, isCancelled: false };
    this.#queries.set(id, query);
    let isOver = false;
    return {
      queryId: id,
      next: async () => {
        if (isOver) return undefined;
        while (!this.#hasEnded(query)) await this.#options.clock.sleep(100);
        isOver = true;
        return this.#lastPage(query);
      },
      cancel: async () => {
        query.isCancelled = true;
      },
    };
  }

  #isProbe({ sql }: Query): boolean {
    return sql === probeQuery(2);
  }

  #endsAt(query: Query): number {
    const { queryMs = 40_000, detectMs = 11_000 } = this.#options;
    const took = this.#isProbe(query) ? 300 : typeof queryMs === "number" ? queryMs : queryMs(query.sql);
    if (query.hitAt === undefined) return query.startedAt + took;
    switch (this.#fate(query)) {
      case "fails":
        return query.hitAt + detectMs;
      case "hangs":
        return Number.POSITIVE_INFINITY;
      default:
        return query.startedAt + took + detectMs;
    }
  }

  #fate({ policy }: Query): "fails" | "survives" | "hangs" | "wrong" {
    return this.#options.fate?.(policy) ?? (policy === "NONE" ? "fails" : "survives");
  }

  #hasEnded(query: Query): boolean {
    return query.isCancelled || this.#now >= this.#endsAt(query);
  }

  #lastPage(query: Query): StatementPage {
    const { rows = [[1, "one"]] } = this.#options;
    if (query.isCancelled) return { rows: [], error: { name: "USER_CANCELED", code: 3, type: "USER_ERROR", message: "cancelled" } };
    if (query.hitAt !== undefined && this.#fate(query) === "fails") return { rows: [], error: { ...LOSS, type: "INTERNAL_ERROR" } };
    if (query.hitAt !== undefined && this.#fate(query) === "wrong") return { rows: [], error: null };
    return { rows, error: null };
  }

  #tasksOf(id: string): readonly GateTask[] {
    const query = this.#query(id);
    const isEnded = this.#hasEnded(query);
    return query.on
      .filter((nodeId) => !this.#dead.has(nodeId))
      .map((nodeId, index) => ({ queryId: id, taskId: `${id}.0.${index}.0`, nodeId, state: isEnded ? "FINISHED" : "RUNNING" }));
  }
}
