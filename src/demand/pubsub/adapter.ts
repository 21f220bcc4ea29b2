/**
 * Backlog of a Pub/Sub subscription, which Pub/Sub itself does not tell: by Cloud Monitoring's API, from two series of a point a minute each.
 *
 * 1. Points are late, up to four minutes: a signal's `maxAge` must be longer than that.
 * 2. No series is no zero: nothing was measured, or nobody may see it.
 * 3. The window that is asked for is by Google's clock: ours may be minutes off.
 */
import { Agent } from "undici";
import { formatInstant, type Instant } from "../../kernel/clock.ts";
import type { Clock } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import type { DemandReading } from "../../model/demand.ts";
import type { ConnectionOf } from "../connections.ts";
import { demandError } from "../errors.ts";
import { fetchJson } from "../http-json.ts";
import type { DemandAdapter } from "../port.ts";
import { SharedClients } from "../shared-clients.ts";
import { newestPoint, type Point, type Subscription } from "./series.ts";
import { AccessTokens } from "./tokens.ts";

type MonitoringConnection = ConnectionOf<"google-monitoring">;

interface Monitoring {
  readonly agent: Agent;
  readonly tokens: AccessTokens;
}

const SOCKETS_MAX = 8;
const CONNECT_LIMIT_MS = 3_000;
const WINDOW_MS = 600_000;
const SKEW_MS = 30_000;
/** Points are a minute apart: an age that is older than the last point but one is of another time. */
const SAME_TIME_MS = 120_000;
const PROJECT = /^[a-z][-a-z0-9.:]{0,62}$/;
const SUBSCRIPTION = /^[A-Za-z][-A-Za-z0-9_.~+%]{2,254}$/;
const METRICS = { backlog: "num_undelivered_messages", age: "oldest_unacked_message_age" } as const;

const clients = new SharedClients<MonitoringConnection, Monitoring, Clock>(
  (connection, clock) =>
    Promise.resolve({
      agent: new Agent({ connections: SOCKETS_MAX, connect: { timeout: CONNECT_LIMIT_MS } }),
      tokens: new AccessTokens(connection, clock),
    }),
  ({ agent }) => agent.destroy(),
);

export const pubsubAdapter: DemandAdapter<"pubsub"> = {
  kind: "pubsub",
  needs: {
    infrastructure: "Google Cloud Pub/Sub with the Cloud Monitoring API of its project",
    permissions: ["monitoring.timeSeries.list in the subscription's project (roles/monitoring.viewer)"],
  },
  flowOf: ({ project, subscription }) => `pubsub/${project}/${subscription}`,
  open({ project, subscription }, connection, { clock }) {
    if (connection?.kind !== "google-monitoring")
      throw demandError("not_available", "a pubsub signal needs a connection of kind google-monitoring");
    const lease = clients.lease(connection, clock);
    return {
      read: async (signal) => new Look(connection, await lease.client(), { project, subscription }, signal).read(clock.now()),
      close: () => lease.release(),
    };
  },
};

interface Measured {
  readonly point: Point | null;
  /** Google's clock. */
  readonly date: Instant | null;
}

class Look {
  readonly #connection: MonitoringConnection;
  readonly #monitoring: Monitoring;
  readonly #wanted: Subscription;
  readonly #signal: AbortSignal;

  constructor(connection: MonitoringConnection, monitoring: Monitoring, wanted: Subscription, signal: AbortSignal) {
    this.#connection = connection;
    this.#monitoring = monitoring;
    this.#wanted = wanted;
    this.#signal = signal;
  }

  async read(now: Instant): Promise<DemandReading> {
    const { project, subscription } = this.#wanted;
    if (!PROJECT.test(project) || !SUBSCRIPTION.test(subscription))
      throw demandError("missing", "this is no project with a subscription", { found: `${project}/${subscription}` });
    let measured = await this.#measure("backlog", now);
    let end = now;
    if (measured.date !== null && Math.abs(measured.date - now) > SKEW_MS) {
      end = measured.date;
      measured = await this.#measure("backlog", end);
    }
    const { point, date } = measured;
    if (point === null)
      throw demandError("missing", `Cloud Monitoring has no value of subscription ${subscription} of project ${project}`, {
        todo: "see that the subscription exists, and that the identity may read the project's metrics",
      });
    return {
      backlog: point.value,
      inFlight: null,
      oldestAgeMs: await this.#oldestAgeMs(point, end),
      flow: `pubsub/${point.of.project}/${point.of.subscription}`,
      valueAt: point.at,
      sourceNow: date,
    };
  }

  async #oldestAgeMs(backlog: Point, end: Instant): Promise<number | null> {
    if (backlog.value === 0) return null;
    const { point } = await this.#measure("age", end);
    return point === null || Math.abs(point.at - backlog.at) > SAME_TIME_MS ? null : point.value * 1_000;
  }

  async #measure(what: keyof typeof METRICS, end: Instant): Promise<Measured> {
    const { project, subscription } = this.#wanted;
    const url = new URL(`${this.#connection.endpoint.replace(/\/+$/, "")}/v3/projects/${encodeURIComponent(project)}/timeSeries`);
    const labels = `resource.labels.project_id="${project}" AND resource.labels.subscription_id="${subscription}"`;
    url.searchParams.set("filter", `metric.type="pubsub.googleapis.com/subscription/${METRICS[what]}" AND ${labels}`);
    url.searchParams.set("interval.startTime", formatInstant(end - WINDOW_MS));
    url.searchParams.set("interval.endTime", formatInstant(end));
    const { body, date } = await this.#get(url);
    return { point: newestPoint(body, METRICS[what]), date };
  }

  /** A token that ended early is exchanged once. */
  async #get(url: URL, isAgain = false): ReturnType<typeof fetchJson> {
    const { agent, tokens } = this.#monitoring;
    const token = await tokens.current(this.#signal);
    const who = `Cloud Monitoring (connection ${this.#connection.name})`;
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    try {
      return await fetchJson({ url, who, headers, dispatcher: agent }, this.#signal);
    } catch (error) {
      const isRefused = error instanceof RelevoError && error.code === "demand_credentials_refused";
      if (!isRefused || token === undefined || isAgain) throw error;
      tokens.refused();
      return this.#get(url, true);
    }
  }
}
