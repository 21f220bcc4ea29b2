/**
 * The replicas of the controller: who lives, and where each is reached. It only elects: who may act for a pool is in the store.
 */
export interface Member {
  readonly id: string;
  /** Of its HTTP API, as other replicas and gateways reach it; null when it says none. */
  readonly api: string | null;
}

export interface Members {
  readonly self: string;
  /** False: there is one replica and no election. */
  readonly isShared: boolean;
  /** Settles once this replica is seen to live, by the others too, and knows the others. */
  start(): Promise<void>;
  /** In good order: the others need not wait until it counts as dead. Settles when they can know. */
  stop(): Promise<void>;
  /** Those that count as living, this one included while it is one of them; by id. While the API server is away it stays as it was. */
  live(): readonly Member[];
  /** Whether the others see this one live: otherwise they take over what it has, and it must not take anything. */
  isLive(): boolean;
  /** Told when `live()` has changed, or `isLive()`. Returns how to stop listening. */
  onChange(listener: () => void): () => void;
}

/** Where there is one replica. */
export function onlyMember(self: string, api: string | null = null): Members {
  const live = [{ id: self, api }];
  return {
    self,
    isShared: false,
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    live: () => live,
    isLive: () => true,
    onChange: () => () => undefined,
  };
}
