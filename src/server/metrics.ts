/**
 * What Relevo counts, by Prometheus' naming conventions. Fed through small functions, so that nobody else knows the names. Labels come from closed sets and
 * from names of pools, routes, replicas and nodes that we cordoned, never from requests.
 */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Instant } from "../kernel/clock.ts";
import { LOSSES, PHASES, type Loss, type Phase } from "../model/phase.ts";
import type { DemandTrouble } from "../model/demand.ts";
import { JOB_OUTCOMES, type JobOutcome } from "../model/slots.ts";
import type { PodLossCause } from "../model/pod-loss.ts";
import type { RouteCounts } from "../model/membership.ts";

export interface PoolGauges {
  readonly phases: Partial<Readonly<Record<Phase, number>>>;
  readonly serving: number;
  readonly desired: number;
  readonly floor: number;
  readonly max: number;
  readonly frozen: boolean;
  readonly heldSteps: number;
  /** Why it does nothing, or not yet: how many subjects, by code. */
  readonly reasons: Readonly<Record<string, number>>;
  /** Of a pool whose size follows its demand. */
  readonly scale: ScaleGauges | undefined;
}

export interface ScaleGauges {
  /** Null: not known. */
  readonly backlog: number | null;
  readonly inFlight: number | null;
  readonly oldestAgeMs: number | null;
  readonly trouble: DemandTrouble | null;
  readonly slots: Readonly<Record<"free" | "progressing" | "stuck", number>> | null;
  readonly isHeld: boolean;
  /** Instances; null: nothing was proven of it as it is now. */
  readonly proven: number | null;
}

export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics(registry: Registry = new Registry()) {
  const registers = [registry];
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Gauge({ name, help, labelNames: [...labelNames], registers });
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]) =>
    new Counter({ name, help, labelNames: [...labelNames], registers });

  const instances = gauge("relevo_instances", "Instances that are not deleted.", ["pool", "phase"]);
  const serving = gauge("relevo_serving", "Instances that serve: the only ones that count towards the floor.", ["pool"]);
  const desired = gauge("relevo_desired", "Instances that are wanted: as decided for its demand, else as its document says.", ["pool"]);
  const floor = gauge("relevo_floor", "Instances that should never be undercut.", ["pool"]);
  const max = gauge("relevo_max", "Instances that the pool may want at most.", ["pool"]);
  const reasons = gauge("relevo_standing_reasons", "What is held back, or waits: so many instances or nodes, by the reason's code.", [
    "pool",
    "code",
  ]);
  const frozen = gauge("relevo_frozen", "1 while an operator froze the pool.", ["pool"]);
  const heldSteps = gauge("relevo_held_steps", "Steps whose effect nobody can tell, waiting for an operator.", ["pool"]);
  const ownCordons = gauge("relevo_own_cordons", "Nodes that Relevo cordoned and nobody uncordoned since.", []);
  const ownCordon = gauge("relevo_own_cordon", "1 while Relevo's own cordon is on the node.", ["node"]);
  const lastPass = gauge("relevo_last_pass_timestamp_seconds", "When the last pass over a pool ended.", ["pool"]);
  const gatewayReplicas = gauge("relevo_gateway_replicas", "Registered gateway replicas.", ["state"]);
  const ready = gauge("relevo_ready", "1 while this part is as it should be: the store, the cluster, the pools.", ["part"]);
  const routeRequests = gauge(
    "relevo_route_requests",
    "Requests of a route as its gateway replicas count them: accepted = completed + in_flight + queued + rejected + cut.",
    ["route", "replica", "state"],
  );
  const backlog = gauge("relevo_demand_backlog", "What waits for the workers of a pool, as it was last valid.", ["pool"]);
  const inFlight = gauge("relevo_demand_in_flight", "What its workers have taken, as it was last valid.", ["pool"]);
  const age = gauge("relevo_demand_age_seconds", "Age of the oldest that waits, as it was last valid.", ["pool"]);
  const trouble = gauge("relevo_demand_trouble", "1 while the newest look at the demand cannot be believed, by why.", ["pool", "trouble"]);
  const slots = gauge("relevo_slots", "Slots of the workers that serve.", ["pool", "state"]);
  const scaleHeld = gauge("relevo_scale_held", "1 while the size does not grow because more instances would not help.", ["pool"]);
  const proven = gauge("relevo_proven", "Instances for which a load test has shown what they can do.", ["pool"]);
  const jobs = counter("relevo_jobs_total", "Jobs that ended, by outcome.", ["pool", "outcome"]);
  const scaleChanges = counter("relevo_scale_changes_total", "Changes of the size that is wanted.", ["pool", "direction"]);
  const demandReads = counter("relevo_demand_reads_total", "Looks at the demand of pools, by how they ended.", ["outcome"]);
  const demandSeconds = new Histogram({
    name: "relevo_demand_read_seconds",
    help: "How long a look at the demand of a pool took.",
    buckets: [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10],
    registers,
  });
  const evidence = counter("relevo_evidence_total", "Facts recorded against instances.", ["pool", "reason", "loss"]);
  const steps = counter("relevo_steps_total", "Journaled steps that ended.", ["kind", "outcome"]);
  const lostInstances = counter("relevo_losses_total", "Instances that left, by class of loss.", ["pool", "loss"]);
  const lostObligations = counter("relevo_lost_obligations_total", "Requests and sessions that were lost or cut with an instance.", [
    "pool",
    "loss",
  ]);
  const podLosses = counter("relevo_pod_losses_total", "Pods of instances that were lost, by cause.", ["pool", "cause"]);
  const assumedSeals = counter("relevo_assumed_seals_total", "Seals outside the zero-loss claim.", ["pool"]);
  const replacements = counter("relevo_serving_started_total", "Instances that began to serve.", ["pool"]);
  const candidateFailures = counter("relevo_candidate_failures_total", "Candidates that failed before they served.", ["pool", "failure"]);
  const writers = counter("relevo_writer_leases_total", "Times that a writer lease was passed to a process, or taken from one.", [
    "pool",
    "to",
  ]);
  const evacuees = gauge("relevo_evacuees", "Instances that must be replaced, by what the newest schedule says of them.", ["turn"]);
  const predicted = gauge("relevo_evacuation_predicted", "Of them: how many will serve in time, as the newest schedule says.", ["within"]);
  const evacuations = counter("relevo_evacuations_total", "Replacements that the schedule began.", ["pool", "in_time"]);
  const breaches = counter("relevo_latency_breaches_total", "Replacements farther away than the pool's latency limit.", ["pool"]);
  const notices = counter("relevo_notices_total", "Notices received.", ["source", "outcome"]);
  const senders = gauge("relevo_notice_senders", "Queues and agents that send notices to this replica, by what is heard of them.", [
    "source",
    "state",
  ]);
  const sinceHeard = gauge(
    "relevo_notice_source_seconds_since_heard",
    "Since any sender of a source was heard by this replica: take the least over all replicas.",
    ["source"],
  );
  const redrives = gauge(
    "relevo_notice_queue_has_redrive",
    "Whether a queue of notices has a redrive policy; absent where that may not be asked.",
    ["queue"],
  );
  const apiRequests = counter("relevo_api_requests_total", "Requests of this API.", ["method", "route", "status"]);
  const passSeconds = new Histogram({
    name: "relevo_pass_duration_seconds",
    help: "How long a pass over a pool took.",
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
    registers,
  });
  const ofPool = [serving, desired, floor, max, frozen, heldSteps, lastPass];

  /** By pool, as it was set last: most passes change nothing of it. */
  const shown = new Map<string, string>();
  const shownReasons = new Map<string, readonly string[]>();
  const shownTrouble = new Map<string, DemandTrouble>();
  const setOrRemove = (metric: Gauge<"pool">, pool: string, value: number | null | undefined) =>
    value === null || value === undefined ? metric.remove({ pool }) : metric.set({ pool }, value);
  const setScale = (pool: string, scale: ScaleGauges | undefined): void => {
    setOrRemove(backlog, pool, scale?.backlog);
    setOrRemove(inFlight, pool, scale?.inFlight);
    setOrRemove(age, pool, scale === undefined || scale.backlog === null ? null : (scale.oldestAgeMs ?? 0) / 1_000);
    setOrRemove(scaleHeld, pool, scale && Number(scale.isHeld));
    setOrRemove(proven, pool, scale && (scale.proven ?? 0));
    for (const state of ["free", "progressing", "stuck"] as const)
      if (scale?.slots) slots.set({ pool, state }, scale.slots[state]);
      else slots.remove({ pool, state });
    const former = shownTrouble.get(pool);
    if (former !== undefined && former !== scale?.trouble) trouble.remove({ pool, trouble: former });
    shownTrouble.delete(pool);
    if (scale === undefined) return;
    if (scale.trouble !== null) {
      trouble.set({ pool, trouble: scale.trouble }, 1);
      shownTrouble.set(pool, scale.trouble);
    }
    for (const outcome of JOB_OUTCOMES) jobs.inc({ pool, outcome }, 0);
  };
  return {
    registry,

    setPool(pool: string, state: PoolGauges): void {
      const text = JSON.stringify(state);
      if (shown.get(pool) === text) return;
      shown.set(pool, text);
      for (const phase of PHASES) if (phase !== "deleted") instances.set({ pool, phase }, state.phases[phase] ?? 0);
      serving.set({ pool }, state.serving);
      desired.set({ pool }, state.desired);
      floor.set({ pool }, state.floor);
      max.set({ pool }, state.max);
      for (const code of shownReasons.get(pool) ?? []) if (!(code in state.reasons)) reasons.remove({ pool, code });
      for (const [code, count] of Object.entries(state.reasons)) reasons.set({ pool, code }, count);
      shownReasons.set(pool, Object.keys(state.reasons));
      frozen.set({ pool }, state.frozen ? 1 : 0);
      heldSteps.set({ pool }, state.heldSteps);
      setScale(pool, state.scale);
      // A series that begins with its first loss would hide that loss from rate().
      for (const loss of LOSSES) lostInstances.inc({ pool, loss }, 0);
      assumedSeals.inc({ pool }, 0);
    },
    /** Its gauges go; what was counted stays. */
    forgetPool(pool: string): void {
      shown.delete(pool);
      setScale(pool, undefined);
      for (const phase of PHASES) instances.remove({ pool, phase });
      for (const code of shownReasons.get(pool) ?? []) reasons.remove({ pool, code });
      shownReasons.delete(pool);
      for (const metric of ofPool) metric.remove({ pool });
    },
    /** By node; what is not named is taken off. */
    setOwnCordons(nodes: readonly string[]): void {
      ownCordons.set(nodes.length);
      ownCordon.reset();
      for (const node of nodes) ownCordon.set({ node }, 1);
    },
    setReady(checks: readonly { readonly name: string; readonly ok: boolean }[]): void {
      for (const { name, ok } of checks) ready.set({ part: name }, ok ? 1 : 0);
    },
    setGatewayReplicas(current: number, silent: number): void {
      gatewayReplicas.set({ state: "current" }, current);
      gatewayReplicas.set({ state: "silent" }, silent);
    },
    /** All routes of all replicas; what is not named is gone. */
    setRoutes(routes: readonly { readonly route: string; readonly replica: string; readonly counts: RouteCounts }[]): void {
      routeRequests.reset();
      for (const { route, replica, counts } of routes) {
        const { accepted, completed, inFlight, queued, rejected, cut, retried } = counts;
        const states = { accepted, completed, in_flight: inFlight, queued, rejected, cut, retried };
        for (const [state, value] of Object.entries(states)) routeRequests.set({ route, replica, state }, value);
      }
    },

    passEnded(pool: string, at: Instant, durationMs: number): void {
      lastPass.set({ pool }, at / 1000);
      passSeconds.observe(durationMs / 1000);
    },
    countEvidence: (pool: string, reason: string, loss: Loss): void => evidence.inc({ pool, reason, loss }),
    countStep: (kind: string, outcome: string): void => steps.inc({ kind, outcome }),
    countLoss(pool: string, loss: Loss, obligations: number, isAssumed: boolean): void {
      lostInstances.inc({ pool, loss });
      lostObligations.inc({ pool, loss }, obligations);
      if (isAssumed) assumedSeals.inc({ pool });
    },
    countPodLoss: (pool: string, cause: PodLossCause): void => podLosses.inc({ pool, cause }),
    countWriter: (pool: string, to: "process" | "nobody"): void => writers.inc({ pool, to }),
    setEvacuation(
      turns: Readonly<Record<"go" | "wait" | "unsavable", number>>,
      prediction: { readonly within: number; readonly beforeDeadline: number },
    ): void {
      for (const [turn, count] of Object.entries(turns)) evacuees.set({ turn }, count);
      predicted.set({ within: "90s" }, prediction.within);
      predicted.set({ within: "deadline" }, prediction.beforeDeadline);
    },
    countEvacuation(pool: string, isLate: boolean, isBreach: boolean): void {
      evacuations.inc({ pool, in_time: isLate ? "no" : "yes" });
      if (isBreach) breaches.inc({ pool });
    },
    countJobs: (pool: string, outcome: JobOutcome, count: number): void => jobs.inc({ pool, outcome }, count),
    countScaleChange: (pool: string, direction: "up" | "down"): void => scaleChanges.inc({ pool, direction }),
    countDemandRead(outcome: "valid" | DemandTrouble, ms: number): void {
      demandReads.inc({ outcome });
      demandSeconds.observe(ms / 1_000);
    },
    countReplacement: (pool: string): void => replacements.inc({ pool }),
    countCandidateFailure: (pool: string, failure: string): void => candidateFailures.inc({ pool, failure }),
    countNotice: (source: string, outcome: string): void => notices.inc({ source, outcome }),
    /** All senders of all sources; what is not named is gone. */
    setSenders(
      all: readonly { readonly source: string; readonly isSilent: boolean; readonly lastHeardAt: Instant | null }[],
      now: Instant,
    ): void {
      senders.reset();
      sinceHeard.reset();
      for (const source of new Set(all.map((sender) => sender.source))) {
        const ofSource = all.filter((sender) => sender.source === source);
        const silent = ofSource.filter(({ isSilent }) => isSilent).length;
        senders.set({ source, state: "silent" }, silent);
        senders.set({ source, state: "heard" }, ofSource.length - silent);
        const heard = ofSource.flatMap(({ lastHeardAt }) => lastHeardAt ?? []);
        if (heard.length > 0) sinceHeard.set({ source }, (now - Math.max(...heard)) / 1000);
      }
    },
    setQueueRedrive: (queue: string, hasRedrive: boolean): void => redrives.set({ queue }, hasRedrive ? 1 : 0),
    countApiRequest: (method: string, route: string, status: number): void => apiRequests.inc({ method, route, status: String(status) }),
  };
}
