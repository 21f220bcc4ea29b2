/** Every bound of the gateway, by name. Times in ms, sizes in bytes. What a route may choose itself stands in its policy. */
export const LIMITS = {
  /** Of a request's head; more is answered 431. */
  requestHeadBytes: 32 * 1024,
  /** Of an instance's answer head; more counts as a broken answer. */
  answerHeadBytes: 64 * 1024,
  /** Until a client has sent a whole request head. */
  requestHeadMs: 10_000,
  /** How often half-sent heads are looked for. */
  requestHeadSweepMs: 2_000,
  /** Until the first byte of a connection tells its protocol. */
  firstByteMs: 60_000,
  /** Bodies up to this size are held so that the request can be tried again; bigger ones and those of unknown size are streamed. */
  heldBodyBytes: 64 * 1024,
  /** How long a client may send nothing while its body is awaited. */
  bodyIdleMs: 30_000,
  /** How long a client may take nothing of an answer that waits for it. */
  slowReaderMs: 120_000,
  /** Answers smaller than this are held until they are whole and go out in one write. */
  wholeAnswerBytes: 16 * 1024,
  /** Connections of clients at a time, and how long one may stay idle. */
  clientConnections: 20_000,
  clientIdleMs: 75_000,
  /** To a member: until the connection stands, and how long one is kept for reuse. */
  connectMs: 1_000,
  memberIdleMs: 4_000,
  /** Tries of one request that members provably did not take; the policy's `tries` bounds the others. */
  notTakenTries: 10,
  /** From the last try's start to the head of its answer, whatever the policy says. */
  answerHeadMs: 900_000,
  /** Requests that wait, over all routes; a more urgent one displaces the last of the least urgent. */
  queuedRequests: 10_000,
  /** Requests that come before any route is known, and how long they wait. */
  lobbyRequests: 1_000,
  lobbyMs: 5_000,
  /** How often waiting requests and sessions are looked through for what has expired. */
  queueSweepMs: 25,
  sessionSweepMs: 250,
  /** What a client is told to wait after a 503. */
  retryAfterS: 1,
  /** Of the gateway's own health checks. */
  healthTimeoutMs: 1_000,
  /** Of a health answer that is looked into for a boot id. */
  healthBodyBytes: 4_096,
  /** While the outcome is not known, or was bad; never slower than the policy. */
  healthFastMs: 100,
  /** Time-outs in a row before a passing member counts as failing; other failures count at once. */
  healthTimeouts: 2,
  /** While stopping: how long a connection may be idle, and how often that is looked at. */
  stoppingIdleMs: 500,
  stoppingSweepMs: 50,
  /** A token lives this long at most; a session may end before. */
  tokenLifeMs: 24 * 3_600_000,
  tokenBytes: 2_048,
  sessionTtlMs: 24 * 3_600_000,
  /** HTTP/2: streams of one connection at a time. */
  streamsPerConnection: 128,
  /** How long the other half of an upgraded connection may stay open after one side ended. */
  upgradedHalfOpenMs: 5_000,
  /** Before a member's deadline: when the gateway closes an upgraded connection itself. */
  upgradedMarginMs: 500,
  /** Between the close frame and the end of the connection. */
  upgradedCloseMs: 1_000,
  longestTimerMs: 2 ** 31 - 1,
  /** A body of unknown length that is whole within this time can be tried again; a longer one is streamed. */
  holdUnknownBodyMs: 10,
  /** Between the first GOAWAY and the end of a connection: what was sent before it was heard still counts. */
  goawayMs: 100,
  controllerLineBytes: 16 * 1024 * 1024,
  reportEveryMs: 1_000,
  /** Changes within this time share one report. */
  reportSoonMs: 20,
  reportTimeoutMs: 5_000,
  reconnectMinMs: 50,
  reconnectMaxMs: 2_000,
  connectControllerMs: 5_000,
  /** Lines to controllers behind one name. */
  controllers: 16,
  /** How often the controllers' name is resolved. */
  resolveEveryMs: 3_000,
  /** Resolutions in a row without an address after which its line is closed. */
  missingResolves: 3,
  /** Different lengths of time limits that are kept; unused ones beyond it are forgotten. */
  limitLengths: 64,
  /** Of a page of Trino's protocol that is held back until its head is known. */
  trinoHeadBytes: 256 * 1024,
  /** Of a compressed one: how much is unpacked, first and if that did not do; gzip makes at most 1,032 bytes of one. */
  trinoGzipHeadBytes: [4 * 1024, 16 * 1024],
  trinoUnpackedBytes: 5 * 1024 * 1024,
  /** Of a page whose data are segments, and which is held whole. */
  trinoSegmentsBytes: 4 * 1024 * 1024,
  /** Of a user or source that is compared with a pattern; longer ones match none. */
  trinoRoutedChars: 256,
  /** Patterns that are kept compiled. */
  trinoPatterns: 1_000,
  /** A cluster that is not known here may have been admitted within this time: all replicas hear of it well before. */
  trinoHeardWithinMs: 10_000,
  /** Until the head of a page's answer, for each try. */
  trinoPollMs: 60_000,
  /** Of a query or transaction whose route went while it was open. */
  trinoTimeoutMs: 300_000,
  /** Queries of which is remembered in whose transaction they run. */
  trinoTransactions: 10_000,
  /** Host names whose route is remembered. */
  rememberedHosts: 10_000,
  /** A route that is gone keeps its generation in memory, so that an older one is still refused. */
  rememberedRoutes: 1_000,
} as const;

/** The slowest share that a newly admitted member starts with. */
export const SLOW_START_FLOOR = 0.1;
