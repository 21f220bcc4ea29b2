/** What a gate needs of the world: the engine, whoever kills a worker, and a look at the exchange. */

/** `nodeId/coordinatorId`: another process is another boot id. */
export interface EngineInfo {
  readonly bootId: string;
  readonly version: string;
  readonly environment: string;
}

export interface GateNode {
  readonly nodeId: string;
  /** `http://host:port`. */
  readonly uri: string;
  /** As the engine names it: `active`, `shutting_down`, … */
  readonly state: string;
  readonly isCoordinator: boolean;
}

export interface GateTask {
  readonly queryId: string;
  readonly taskId: string;
  readonly nodeId: string;
  /** As the engine names it: `RUNNING`, `FINISHED`, … */
  readonly state: string;
}

/** What the engine itself says of one query: not what it was asked for, but what it took. */
export interface EffectiveQuery {
  readonly state: string;
  /** Null where the engine does not tell it. */
  readonly retryPolicy: string | null;
  /** Properties of catalogs with the catalog in front. */
  readonly session: Readonly<Record<string, string>>;
}

/** Every call is bounded in time and rejects with a RelevoError; reads may fail while a worker dies. */
export interface GateEngine {
  info(): Promise<EngineInfo>;
  /** `system.runtime.nodes`: who has announced itself. */
  nodes(): Promise<readonly GateNode[]>;
  /** `system.runtime.tasks` of these queries. */
  tasks(queryIds: readonly string[]): Promise<readonly GateTask[]>;
  query(queryId: string): Promise<EffectiveQuery>;
  /** Runs with this session; settles when the engine has given the query its id. */
  start(sql: string, session: Readonly<Record<string, string>>): Promise<RunningStatement>;
}

export type Row = readonly unknown[];

export interface EngineError {
  readonly name: string;
  readonly code: number;
  readonly type: string;
  readonly message: string;
}

export interface StatementPage {
  readonly rows: readonly Row[];
  readonly error: EngineError | null;
}

export interface RunningStatement {
  readonly queryId: string;
  /** Undefined after the last page. Rejects when the coordinator does not answer for it any more. */
  next(): Promise<StatementPage | undefined>;
  cancel(): Promise<void>;
}

export interface GateWorker {
  readonly nodeId: string;
  readonly uri: string;
}

/** One way to kill a worker, and to see that it is dead. */
export interface Killer {
  /** What is done, for people: `pod default/trino-worker-1 with a grace of 0`. */
  readonly how: string;
  /** A word on what was killed, such as the pod and its UID. Rejects when it could not be done. */
  kill(worker: GateWorker): Promise<string>;
  /** Whether the process that was killed is there no more, by a look of its own and never by the engine's; null: it cannot be seen. */
  isGone(worker: GateWorker): Promise<boolean | null>;
  /** Brings it back where nobody else does. */
  restart(worker: GateWorker): Promise<void>;
}

export interface ExchangeEntry {
  readonly path: string;
  readonly bytes: number;
}

/** What lies at the location of the exchange under a query's id (T13). At most `MOST_ENTRIES` of them. */
export interface ExchangeListing {
  readonly location: string;
  list(queryId: string): Promise<readonly ExchangeEntry[]>;
}
export const MOST_ENTRIES = 10_000;

/** Workers that say of themselves that they are ready, whether or not the coordinator knows them; null: nobody can tell. */
export interface ReadyWorkers {
  /** Names for people: a pod, an address. */
  ready(): Promise<readonly string[] | null>;
}
