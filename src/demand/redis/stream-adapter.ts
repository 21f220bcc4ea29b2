/**
 * Backlog of a consumer group of a Redis stream: entries that were not delivered to it (`lag`), and those that were and are not acknowledged (`pending`).
 *
 * 1. The age is that of the first entry that was not delivered, by its id, which is a time of Redis's own clock; so is the time it is compared with.
 * 2. Redis does not know the lag after an entry was deleted that was not delivered, before version 7 never: then the entries are counted, up to a bound.
 */
import type { Instant } from "../../kernel/clock.ts";
import type { DemandReading, SignalOf } from "../../model/demand.ts";
import { demandError } from "../errors.ts";
import type { DemandAdapter } from "../port.ts";
import { type RedisLink, redisLinks } from "./link.ts";
import { timeOf } from "./time.ts";

type Spec = SignalOf<"redis-stream">;

/** Their payloads come over the wire. */
export const COUNTED_MAX = 1_000;
/** September 2001. An id before it is not the time of Redis, but a number that a producer gave. */
const FIRST_PLAUSIBLE_TIME = 1e12;

export const redisStreamAdapter: DemandAdapter<"redis-stream"> = {
  kind: "redis-stream",
  needs: {
    infrastructure: "Redis 7 or newer, or Valkey, without cluster mode (5 and 6: up to 1,000 entries)",
    permissions: ["+xinfo|groups and +xrange on the stream", "+time"],
  },
  flowOf,
  open(spec, connection) {
    if (connection?.kind !== "redis") throw demandError("not_available", "a redis-stream signal needs a connection of kind redis");
    const lease = redisLinks.lease(connection);
    return { read: async (signal) => readDemand(spec, await lease.client(), signal), close: () => lease.release() };
  },
};

function flowOf({ stream, group }: Spec): string {
  return `redis/${stream}/${group}`;
}

export async function readDemand(spec: Spec, link: Pick<RedisLink, "together">, signal: AbortSignal): Promise<DemandReading> {
  const { stream } = spec;
  const [time, groups] = await link.together([["TIME"], ["XINFO", "GROUPS", stream]], signal);
  const sourceNow = timeOf(time);
  const { lag, pending, next } = groupOf(groups, spec);
  const isUnknown = lag === null || lag === undefined;
  const ids = lag === 0 ? [] : await idsFrom(link, stream, next, isUnknown ? COUNTED_MAX + 1 : 1, signal);
  if (isUnknown && ids.length > COUNTED_MAX)
    throw demandError("partial", "Redis does not know how many entries the group has not got, and they are too many to be counted", {
      found: `more than ${COUNTED_MAX}`,
      todo: "it knows again once the group has passed the entry that was deleted; before Redis 7 it never does",
    });
  return {
    backlog: (isUnknown ? ids.length : lag) as number,
    inFlight: pending as number,
    oldestAgeMs: ageOf(ids[0], sourceNow),
    flow: flowOf(spec),
    valueAt: null,
    sourceNow,
  };
}

interface Group {
  readonly lag: unknown;
  readonly pending: unknown;
  /** The lowest id that was not delivered. */
  readonly next: string;
}

function groupOf(groups: unknown, { stream, group }: Spec): Group {
  if (!Array.isArray(groups)) throw demandError("type_changed", "what answers is no Redis: its groups cannot be read", { found: groups });
  const fields = groups.map(fieldsOf).find((each) => each["name"] === group);
  if (fields === undefined) throw demandError("missing", `the stream ${stream} has no group ${group}`);
  const { lag, pending, "last-delivered-id": last } = fields;
  const id = /^(\d+)-(\d+)$/.exec(String(last));
  if (id === null) throw demandError("type_changed", "the group's place in the stream cannot be read", { found: last });
  return { lag, pending, next: `${id[1]}-${BigInt(id[2] ?? 0) + 1n}` };
}

/** RESP 2 answers names and values in one list, RESP 3 a mapping. */
function fieldsOf(answer: unknown): Readonly<Record<string, unknown>> {
  if (!Array.isArray(answer)) return typeof answer === "object" && answer !== null ? (answer as Record<string, unknown>) : {};
  const pairs: [string, unknown][] = [];
  for (let index = 0; index + 1 < answer.length; index += 2) pairs.push([String(answer[index]), answer[index + 1]]);
  return Object.fromEntries(pairs);
}

async function idsFrom(link: Pick<RedisLink, "together">, stream: string, next: string, count: number, signal: AbortSignal) {
  const [entries] = await link.together([["XRANGE", stream, next, "+", "COUNT", String(count)]], signal);
  if (!Array.isArray(entries)) throw demandError("type_changed", "the entries of the stream cannot be read", { found: entries });
  return entries.map((entry) => String(Array.isArray(entry) ? entry[0] : entry));
}

function ageOf(id: string | undefined, now: Instant): number | null {
  const at = Number(id?.split("-", 1)[0] ?? Number.NaN);
  return Number.isFinite(at) && at >= FIRST_PLAUSIBLE_TIME ? Math.max(0, now - at) : null;
}
