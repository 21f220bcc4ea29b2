/**
 * Every reason that Relevo gives for what it does and for what it leaves alone (D11): the code that programs match on and the sentence that people read,
 * made in one place. `{name}` in a sentence is filled from the reason's parameters.
 */
export const REASONS = {
  // what it does, and why
  below_desired: "{serving} of {desired} instances serve: one more is created",
  above_desired: "{serving} instances serve and {desired} are desired: one is drained",
  replace_condemned: "{instance} must make way ({evidence}): its replacement is created first",
  replace_lost: "{instance} was lost ({evidence}): its replacement is created",
  standby_taken: "{standby} is warm: it takes over from {instance} ({evidence})",
  standby_refill: "{have} of {wanted} standby are there or on their way: one more is made",
  standby_surplus: "{have} standby are there or on their way and {wanted} are wanted: one is given up",
  standby_makes_room: "a replacement of a more important pool needs room: {wanted} standby are kept for now",
  standby_outdated: "the pool's blueprint changed since it was made: it is made anew",
  standby_prepare: "its own health check passed: it is prepared and stays as standby",
  cordon_condemned_node: "{node} carries {instance} and will go ({evidence}): nothing new may land there",
  protect_pod: "{pod} is ours by its owners' UIDs: it is marked as not to be disrupted",
  member_condemned: "the node of {pod}, a member of {instance}, goes ({evidence}): that pod alone is drained and made anew elsewhere",
  member_drain: "the node of {pod} goes at {deadline}: it takes no new work and finishes what it has ({how})",
  member_back: "the node of {pod} stays after all: it takes work again",
  member_replace: "{pod} is deleted, so that its own workload makes the next one elsewhere: {why}",
  unprotect_pod: "{pod} bears our marks and is not ours any more by its owners' UIDs: they are taken off",
  created: "its objects exist",
  prepared: "all its pods run and are ready on healthy nodes",
  validated: "its own health check passed",
  applied_everywhere: "every registered gateway replica has applied generation {generation} and the first check passed",
  drain_voluntary: "{serving} serve and {desired} are desired: {instance} may leave ({evidence})",
  drain_deadline: "its node goes at {deadline}: it drains now ({evidence})",
  uncordon_command: "{by} asked for it: Relevo's own cordon is taken off {node}",
  drain_command: "an operator asked for it ({evidence})",
  seal_forced:
    "{by} gave up what it still had ({obligations} known): {why}; outside the zero-loss claim, and listed until it is gone and {until} is over",
  drain_forced: "its process is lost ({evidence}): its obligations are void and counted",
  worker_admitted: "it is admitted and its own check passes: it takes its work by itself, and no gateway sends it any",
  worker_done: "it takes nothing new and says that none of its slots is busy",
  worker_silent: "it speaks no protocol and cannot be told to finish: it has the grace period of its pod, and the seal is assumed",
  obligations_done: "every gateway replica has applied generation {generation} and reports no obligation",
  deadline_passed: "its deadline {deadline} is over and it still has obligations: they are given up and counted",
  process_lost: "its process is lost: nothing runs on it any more",
  replica_silent:
    "gateway replica {replica} was silent for longer than {ttl} and the door at the instance is shut: the seal is assumed, outside the zero-loss claim",
  waiting_for_silent_replica:
    "gateway replica {replica} is silent and may still send, and the instance has no door to shut (protocol {protocol}): it is waited for until the replica is given up",
  deadline_reached: "its node is taken at {deadline}: what still runs on it is closed or lost",
  sealed: "it is sealed: it may be deleted",
  gone: "its objects are gone",
  candidate_failed: "the candidate failed ({failure}) and is cleaned up",
  new_incarnation: "its process was replaced by another (incarnation {incarnation}): it is prepared and admitted anew",
  writer_passed: "it writes for workload {ordinal} from now on",
  writer_fenced: "the writer lease of workload {ordinal} is taken from {instance}: what still comes from it is stale",
  writer_unknown:
    "objects of {stranger} are here, which the store does not know: it may write for workload {ordinal}, so that nobody gets its lease before they are gone, or relevo store recover",
  lease_late: "its writer lease was not renewed for {ttl}: it gets nothing new until it is",
  lease_renewed: "its writer lease is renewed again",
  check_failing: "its check fails ({code}): it is suspect until it passes again",
  check_passing: "its check passes again",
  pool_deleted: "its pool is deleted",
  pool_orphaned: "its pool is deleted with the policy orphan: nothing of it is touched any more",
  surplus_candidate: "{held} instances are there or on their way and {desired} are desired: a candidate is given up",

  scale_up:
    "{work} pieces of work wait or are taken and one instance is to have {target}: {from} instances ({coming} of them still coming) become {to}",
  scale_down: "{work} pieces of work wait or are taken and one instance is to have {target}: {from} instances become {to}",
  scale_bounds: "the size must be from {floor} to {limit} ({bound}): {from} instances become {to}",
  scale_fallback:
    "nothing valid was read of the demand since {since} ({trouble}): {from} instances become {to}, as scale.fallback declares",

  scale_target: "{target} has {from} replicas and {to} were decided",
  scale_adopted: "{by} gave {target} to this Pool ({removed} removed): it has {replicas} replicas and keeps them",
  scale_released: "{by} took {target} from this Pool: it keeps {replicas} replicas",
  scale_owner_removed: "{by} asked for it: {owner} ({uid}) is removed, so that {target} has one owner",

  evacuation_late: "it cannot be saved in time ({why}: {missing}); its replacement is meant to serve at {servingAt}",

  // why it does nothing, or not yet
  scale_paused: "scale.pausedAt is {pausedAt}: the size is {size} whatever the demand",
  scale_demand_invalid: "the demand cannot be believed ({trouble}: {detail}): the size stays {desired}, as it was decided last",
  scale_demand_unread: "the demand was not read yet: the size stays {desired}",
  scale_tolerance: "{wanted} instances are wanted: that is within {tolerance} % of {desired}",
  scale_up_window: "{wanted} instances are wanted, and {lowest} were within the last {window}: more come when that is over at {until}",
  scale_down_window: "{wanted} instances are wanted, and {highest} were within the last {window}: fewer stay when that is over at {until}",
  scale_cooldown: "{wanted} instances are wanted, and the last change was in the other direction: {desired} stay until {until}",
  scale_step: "{wanted} instances are wanted: no more than {most} are changed within {per}, the next at {until}",
  scale_at_max: "{wanted} instances are wanted and size.max is {limit}",
  scale_at_quota: "{wanted} instances are wanted and a quota refuses more than {limit}",
  scale_settling:
    "{wanted} instances are wanted, and the controller is new: before {until} it cannot tell what the slots of the {serving} that serve do",
  scale_held_stuck:
    "{wanted} instances are wanted and {stuck} of {busy} busy slots make no progress (at most {share} % may): more instances would be stuck too, what is stuck is repaired first; held since {since}",
  scale_held_slowing:
    "{wanted} instances are wanted and a busy slot finishes {now} jobs a minute where {usual} are usual: more instances would not finish more; held since {since}",
  scale_held_no_gain:
    "{wanted} instances are wanted, and the last rise from {from} to {to} raised no throughput ({before} jobs a minute before, {now} now): what bounds it is elsewhere; held since {since}",
  scale_held_blind:
    "{wanted} instances are wanted, the growth was held back, and {answering} of {serving} that serve say what their slots do: held since {since}",
  scale_held_long: "{wanted} instances are wanted and the growth is held back since {since}, longer than {holdFor} ({cause}): {todo}",
  scale_target_unread: "{target} was not read yet: nothing is written",
  scale_target_unseen: "{target} cannot be seen as it is now ({trouble}): nothing is written",
  scale_target_gone: "there is no {target}: nothing is written",
  scale_target_replaced: "{target} is another object ({uid}) than the one that was adopted ({adopted}): relevo adopt takes it over anew",
  scale_target_paused: "the roll-out of {target} is paused: its replicas stay as they are, {replicas} where {desired} were decided",
  scale_target_deleting: "{target} is being deleted: nothing is written",
  scale_not_adopted: "{target} has {replicas} replicas and is not this Pool's yet ({wanted} would be wanted): relevo adopt takes it over",
  scale_other_owner: "{owner} sets the replicas of {target} too ({deed}): two owners of one count, so nothing is written",
  scale_through_keda: "{owner} asks this Pool for the size of {target} and sets it: {desired} were decided and {replicas} are there",
  target_follows: "{target} has the {desired} replicas that were decided",
  evacuation_wait:
    "its turn to be evacuated comes at {until}, to {supply}: more urgent ones are before it, and a site takes over only so many at a time",
  evacuation_held_back:
    "{supply} is held back for more important ones that may have to go too: it is its own at {until} if nothing else becomes free before",
  evacuation_unsavable: "it cannot be saved ({why}): what is missing is {missing}",
  nothing_to_do: "as many instances serve as are desired, and no evidence is against any of them",
  nothing_condemned: "no evidence is against any instance",
  mode_off: "disruption.mode is Off: nothing that is seen causes a change",
  mode_observe: "disruption.mode is Observe: this is what would be done in Act: {would}",
  older_replica: "{replica} lives and is older than this version: the pool is not activated before it is gone, and only observed",
  frozen: "the pool is frozen until {until}: {why}",
  store_unavailable: "the store cannot be written: nothing is admitted, sealed or deleted until it can",
  store_rewound:
    "{witness} has seen {what} {seen} and the store has {stored}: it was restored from an old backup; nothing is admitted, sealed, deleted, scaled or fenced until relevo store recover",
  stranger: "its objects are here and the store does not know it: nothing of it is touched",
  stranger_waits:
    "the store does not know it since it was recovered: its objects are deleted once every gateway replica has applied generation {generation}",
  stranger_outlived: "its instance was deleted before these objects were made, by a controller that had been overtaken: they are deleted",
  stranger_deleted:
    "the store does not know it since it was recovered, and no gateway replica sends anything there: its objects are deleted",
  not_owner: "another controller owns the pool (epoch {epoch})",
  serving_not_above_desired: "{serving} serve and {desired} are desired: a voluntary drain waits for one more",
  waiting_for_replacement: "{instance} waits for its replacement {replacement} ({phase})",
  surge_used: "all {surge} surge places are taken",
  draining_used: "all {draining} draining places are taken",
  capacity_used: "{occupied} instances occupy capacity, {allowed} may",
  worker_finishes: "it takes nothing new and finishes {jobs} jobs ({evidence})",
  drain_in_progress: "{requests} requests, {sessions} sessions are unfinished",
  drain_overdue:
    "it has drained for longer than {drainFor} and still has obligations; nothing is killed: only a notice or an operator's command ends it",
  waiting_for_gateways: "gateway replicas {replicas} have not yet applied generation {generation}",
  waiting_for_first_gateway: "no gateway replica is registered",
  serving: "it serves and nothing is against it",
  serving_without_members: "it serves and {ready} of {wanted} of its pods are ready: the others are made anew by their own workloads",
  member_leaving: "{pod} is being deleted: its own workload makes the next one",
  member_finishes: "{pod} takes no new work ({state}): it is deleted once that is finished, and at the latest at {until}",
  member_ends: "{pod} ends and nothing takes that back, though its node stays: its own workload starts it anew",
  member_unread: "what {pod} says of itself is not known yet: its node goes at {deadline}",
  member_waits_for_cordon: "{pod} can be made anew once its node {node} takes nothing new, and is at the latest at {until}",
  awaiting_absence: "its objects were deleted; it occupies capacity until they are gone",
  deletion_refused: "the pool is being deleted, its deletion policy is refuse and {live} instances live: set deletion to drain or orphan",
  deletion_cause_unknown:
    "it is being deleted, and whether its CRD or its namespace goes too cannot be read, so nothing of it is drained: {found}",
  standby_ready: "it is warm and takes no traffic until one must be replaced",
  standby_unhealthy: "its health check fails ({code}): it is not taken, and is replaced when that lasts for {limit}",
  standby_none: "no standby is warm and well ({found} of {wanted}): its replacement is made anew",
  standby_reserved: "the standby that is there is kept for those whose capacity goes sooner",
  standby_paced:
    "{coming} of {have} standby are on their way, which is as many as come at once: those that are still missing of {wanted} follow them",
  standby_waits: "{candidates} that serve are on their way: they come first, then the standby is refilled",
  standby_room_used: "{occupied} standby occupy capacity, {wanted} may: the next is made when one of them is gone",
  waiting_for_health: "its health check has not passed yet",
  waiting_for_schedule: "its pods wait for a place",
  no_capacity: "its pods find no place: {what} ({dimension})",
  waiting_for_schedule_elsewhere: "its pods wait for a place away from where capacity is dying ({placement})",
  waiting_for_pods: "{ready} of {wanted} pods are ready",
  inventory_incomplete: "the inventory is not complete ({missing}): no node is cordoned until it is",
  inventory_error: "the inventory could not be read ({error}): no node is cordoned until it can",
  node_changed: "{node} is not the node that the evidence names any more",
  node_owner_unknown: "{node} belongs to no declared provisioner ({provisioners})",
  node_unsafe: "{node} is {why}: a candidate there would have to move again",
  foreign_cordon: "{node} was cordoned by somebody else: it is left as it is",
  candidates_held: "{failures} candidates failed within {per}: no more are tried until {until}",
  candidates_few: "{failures} candidates failed a while ago: no more than {most} are tried at once",
  candidate_backoff: "the last candidate failed: the next is tried at {until}",
  candidate_not_ready: "the candidate was not ready within {limit}",
  lease_brake:
    "{late} of {total} writer leases were not renewed within {window} of each other and nobody else sees anything wrong: the observer is suspected first; nobody is fenced for it until a second witness confirms",
  lease_unasked:
    "it holds the writer lease of workload {ordinal} and has never asked for it: it cannot write; instances that were admitted before the pool had a lease must be replaced",
  waiting_for_writer: "{holder} writes for workload {ordinal} until it is sealed or fenced",
  waiting_for_fence: "{holder}, which wrote for workload {ordinal}, must be fenced before another takes traffic",
  step_unknown: "step {step} was begun and its effect is not yet known",
  step_retry: "step {step} failed {attempts} times ({error}) and is tried again at {until}",
  step_forbidden: "the API server refuses {step}, which is tried again: {found}",
  finalizer_forbidden: "the API server refuses Relevo's finalizer, and a Pool that is deleted now would be orphaned: {found}",
  step_held: "step {step} cannot be told to have happened or not: {why}",
  step_from_newer_version: "step {step} is of kind {kind}, which this version does not know: a newer controller must finish it",
  brake:
    "{suspect} of {total} instances of {site} became suspect within {window} without a notice: the observer is suspected first; held until a second witness confirms",
  observer_new: "the controller is new or was away: no pool-wide decision before {until}",
  sealed_only: "only a sealed instance may be deleted",
  spec_invalid: "the pool's document is not valid: {problem}",
  service_fixed:
    "the instances that live are spoken to as they were made (protocol {protocol}, healthPath {healthPath}): another spec.service is taken up when none of them is left",
  route_taken: "the route {route} is that of pool {pool}: nothing is admitted until this pool has another one",
} as const;

export type ReasonCode = keyof typeof REASONS;

export interface Reason {
  readonly code: ReasonCode;
  readonly params: Readonly<Record<string, string | number>>;
}

export function reason(code: ReasonCode, params: Readonly<Record<string, string | number>> = {}): Reason {
  return { code, params };
}

/** The sentence that people read; a parameter that is missing shows as `?`. */
export function sentenceOf({ code, params }: Reason): string {
  return REASONS[code].replaceAll(/\{(\w+)\}/g, (_, name: string) => String(params[name] ?? "?"));
}
