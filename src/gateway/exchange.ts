/**
 * The life of one request, whatever protocol its client speaks: accepted → (queued) → tried → (tried elsewhere) → answered, rejected or cut.
 *
 * 1. It is tried again only if the member provably did not take it, or if it is repeatable and nothing of an answer has gone out.
 * 2. A request with a token goes to the instance in it and nowhere else.
 * 3. It ends exactly once, by `#end`.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import type { Dispatcher } from "undici";
import type { Epoch } from "../kernel/epoch.ts";
import { HEADERS, type Priority } from "../model/membership.ts";
import { Answering } from "./answering.ts";
import { Attempt, type Failure, rejectionOf, STALE } from "./attempt.ts";
import { chooseMember } from "./balancer.ts";
import { type RejectionCode, rejectionAnswer } from "./codes.ts";
import type { GatewayCore } from "./core.ts";
import { Limit } from "./deadlines.ts";
import { addWay, answerHeaders, firstValue, isIdempotent, type RequestHead } from "./headers.ts";
import type { Held } from "./held.ts";
import type { Obligation, Outcome, RouteLedger } from "./ledger.ts";
import { LIMITS } from "./limits.ts";
import type { MemberState, RouteState } from "./membership.ts";
import { laneOf, type QueueRefusal, type Waiter } from "./queue.ts";
import { isStaleEpoch, writerEpochOf } from "./stale.ts";
import { SessionTie, tokenOf } from "./session.ts";
import type { TrinoTie } from "./trino/tie.ts";

/** Nothing, held whole so that it can be sent again, or streamed once. */
export type RequestBody = Buffer | null | "stream";

const NOBODY: readonly MemberState[] = [];

export abstract class Exchange extends Answering implements Obligation, Waiter, Held {
  obligationState: Obligation["obligationState"] = "new";
  heldBy: MemberState | null = null;
  upgraded = false;
  readonly ledger: RouteLedger;
  queueRoute: string;
  readonly priority: Priority;
  queueUntil = 0;
  heldAt = -1;

  protected readonly core: GatewayCore;
  protected readonly route: RouteState;
  protected readonly method: string;
  protected readonly path: string;
  protected readonly head: RequestHead;
  /** The protocol that the client's connection is free to change to. */
  protected readonly upgradeTo: string | undefined;
  protected body: RequestBody = null;
  protected attempt: Attempt | null = null;

  #tried: readonly MemberState[] = NOBODY;
  #tries = 0;
  #notTaken = 0;
  #queuedAt = 0;
  #queuedMs = 0;
  #bodyTouched = false;
  #bodyFailed = false;
  #tie: SessionTie | null = null;
  /** Null on routes that do not lead to Trino clusters. */
  readonly #trino: TrinoTie | null;
  #limit: Limit | null = null;
  /** Under which epoch the answer was made that is on its way; null: nothing is compared. */
  #writerEpoch: string | null = null;
  #paused = false;
  #slow: Limit | null = null;

  constructor(
    core: GatewayCore,
    route: RouteState,
    method: string,
    path: string,
    head: RequestHead,
    upgradeTo?: string,
    trino: TrinoTie | null = null,
  ) {
    super();
    this.upgradeTo = upgradeTo;
    this.#trino = trino;
    this.core = core;
    this.route = route;
    this.ledger = core.ledger.of(route.route);
    this.queueRoute = route.route;
    this.priority = route.policy.priority;
    this.method = method;
    this.path = path;
    this.head = head;
  }

  /** It may go to one instance only. */
  get #bound(): boolean {
    return this.#tie?.binds === true || this.#trino?.binds === true;
  }

  get ended(): boolean {
    return this.obligationState === "ended";
  }

  /** Counts it; call before anything else. */
  accept(): void {
    this.core.ledger.accept(this);
  }

  /** Looks for a member; the body, if it is to be held, is there. */
  begin(): void {
    if (this.#trino !== null) return this.#beginTrino(this.#trino);
    const token = tokenOf(this.head);
    if (token === undefined) this.#seek();
    else this.#follow(token);
  }

  #follow(token: string): void {
    this.#tie = new SessionTie(this.core);
    const member = this.#tie.follow(token, this.route.route);
    if (typeof member === "string") return this.reject(member);
    this.#tryOnly(member);
  }

  #beginTrino({ fault, member }: TrinoTie): void {
    if (fault !== null) return this.reject(fault);
    if (member?.gone === true) return this.reject("session_lost"); // the request's body took its time
    return member === null ? this.#seek() : this.#tryOnly(member);
  }

  #tryOnly(member: MemberState): void {
    if (member.health !== "unknown") return this.#try(member);
    // Not even a session's instance gets traffic from a replica that has not seen it answer (I11).
    this.queueRoute = laneOf(member);
    this.#wait();
  }

  #seek(): void {
    // Nobody overtakes those who wait.
    const member = this.core.hasWaiting(this.queueRoute) ? undefined : chooseMember(this.route, this.core.clock.monotonic(), this.#tried);
    if (member !== undefined) this.#try(member);
    else this.#wait();
  }

  #wait(): void {
    const now = this.core.clock.monotonic();
    const { queueLimit, queueWaitMs } = this.route.policy;
    const leftMs = queueWaitMs - this.#queuedMs;
    if (leftMs <= 0) return this.reject("queue_timeout");
    this.#tried = NOBODY;
    this.#queuedAt = now;
    this.queueUntil = now + leftMs;
    if (!this.core.waiting.join(this, queueLimit)) return this.reject("queue_full");
    this.core.ledger.queue(this);
    this.core.queueGrew();
  }

  /** It is its turn: the queue gave it a member. */
  leaveQueueFor(member: MemberState): void {
    this.#leaveQueue();
    this.#try(member);
  }

  queueRefused(why: QueueRefusal): void {
    this.#unqueue();
    this.reject(why);
  }

  #leaveQueue(): void {
    this.core.waiting.leave(this);
    this.#unqueue();
  }

  #unqueue(): void {
    this.#queuedMs += this.core.clock.monotonic() - this.#queuedAt;
    this.core.ledger.unqueue(this);
  }

  // ---- a try

  #try(member: MemberState): void {
    this.#tries += 1;
    if (this.#tries === 2) this.core.ledger.retried(this);
    this.core.hold(this, member);
    const upstream = this.core.upstreamOf(member);
    const upgrade = this.upgradeTo;
    const client = upgrade === undefined ? upstream.take() : upstream.fresh();
    const attempt = new Attempt(this, member, client);
    this.attempt = attempt;
    this.#startLimit();
    const body = this.body === "stream" ? this.#touchingBody() : this.body;
    const options = {
      method: this.method,
      path: this.path,
      headers: this.head.headers,
      body: body as Dispatcher.DispatchOptions["body"] & {},
    };
    client.dispatch(upgrade === undefined ? options : { ...options, upgrade }, attempt);
  }

  // undici would destroy a stream whose connection failed; of an iterable it asks nothing before the first write.
  async *#touchingBody(): AsyncGenerator<Buffer> {
    this.#bodyTouched = true;
    try {
      yield* this.streamBody();
    } catch (error) {
      this.#bodyFailed = true;
      throw error;
    }
  }

  /** The last try, and whatever may not be repeated, is bounded by the gateway's own limit only. */
  #startLimit(): void {
    const short = this.#repeatable() && !this.#bound && this.#tries - this.#notTaken < this.route.policy.tries;
    this.#limit ??= new Limit(() => this.#limitReached());
    const longMs = this.#trino?.answerWithinMs ?? LIMITS.answerHeadMs;
    this.core.deadlines(short ? this.route.policy.perTryTimeoutMs : longMs).start(this.#limit);
  }

  #limitReached(): void {
    const attempt = this.attempt;
    if (attempt === null) return;
    attempt.abort();
    this.#fail(attempt, { kind: "lost", reason: "timeout" });
  }

  #repeatable(): boolean {
    return (
      this.body !== "stream" &&
      this.route.policy.retry === "idempotent" &&
      this.upgradeTo === undefined &&
      isIdempotent(this.method, this.head)
    );
  }

  attemptStarted(): void {
    if (this.body === "stream" && this.head.expectsContinue) this.sendContinue();
  }

  attemptInformed(status: number, headers: IncomingHttpHeaders): void {
    if (status !== 100 && !this.headSent) this.sendInformation(status, answerHeaders(headers));
  }

  attemptAnswered(status: number, given: IncomingHttpHeaders, message: string): void {
    this.#limit?.stop();
    const instead = this.#trino?.insteadOf(status) ?? null;
    if (instead !== null) return this.#rejectInstead(instead);
    const headers = this.#headersFor(given);
    const page = this.#trino === null || this.heldBy === null ? null : this.#trino.answered(status, given, this.heldBy, headers);
    this.beginAnswer(status, headers, message, firstValue(given, "content-length"), page);
    if (this.method !== "HEAD" && status !== 204 && status !== 304) this.beginBody();
  }

  #headersFor(given: IncomingHttpHeaders): string[] {
    const headers = answerHeaders(given);
    const member = this.heldBy;
    if (member !== null) {
      headers.push(HEADERS.instance, member.instance);
      if (member.writer !== null) this.#writerEpoch = writerEpochOf(given);
    }
    addWay(headers, this.#tries, this.#queuedMs);
    const session = given[HEADERS.session];
    if (session !== undefined && member !== null) {
      this.#tie ??= new SessionTie(this.core);
      this.#tie.answered(String(session), member, headers);
    }
    return headers;
  }

  /** Whatever the instance answers is of no use to the client. */
  #rejectInstead(code: RejectionCode): void {
    const member = this.#giveUp();
    this.reject(code);
    if (member !== null) this.core.memberReleased(member);
  }

  attemptData(chunk: Buffer): void {
    if (this.passData(chunk)) return;
    this.#paused = true;
    this.attempt?.pause();
    this.#slow ??= new Limit(() => this.#cutSlow());
    this.core.deadlines(LIMITS.slowReaderMs).start(this.#slow);
  }

  /** The client took what it was sent. */
  clientDrained(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#slow?.stop();
    this.attempt?.resume();
  }

  attemptEnded(attempt: Attempt, trailers: IncomingHttpHeaders): void {
    // What the client sees of the end comes before the counts, so that a count of zero is never early.
    this.endAnswer(trailers);
    const member = this.#release(true);
    this.attempt = null;
    this.#stopLimits();
    if (member !== null) this.core.giveBack(this, member, attempt.client, this.bodyIsOver());
    this.#end("completed", "completed");
    if (member !== null) this.core.memberReleased(member);
  }

  /** The member lets go of it; `isWhole`: its whole answer went out. */
  #release(isWhole = false): MemberState | null {
    if (this.heldBy !== null) {
      this.#tie?.settle(this.heldBy);
      this.#trino?.settle(this.heldBy, isWhole);
    }
    return this.core.ledger.release(this);
  }

  attemptFailed(attempt: Attempt, failure: Failure): void {
    // The member saw the request break off because its body did.
    this.#fail(attempt, this.#bodyFailed ? { kind: "invalid", reason: "body_aborted" } : failure);
  }

  #fail(attempt: Attempt, failure: Failure): void {
    this.attempt = null;
    this.#stopLimits();
    const member = this.core.ledger.release(this);
    this.core.discard(this, attempt.member, attempt.client);
    this.dropAnswer();
    this.#writerEpoch = null;
    if (failure.kind !== "invalid") this.core.trouble(attempt.member, failure.reason);
    this.#afterFailure(attempt.member, failure);
    if (member !== null) this.core.memberReleased(member);
  }

  #afterFailure(member: MemberState, failure: Failure): void {
    if (failure.kind === "invalid") {
      const code = this.#bodyFailed ? "body_aborted" : "bad_request";
      return this.headSent ? this.#cut(code) : this.reject(code);
    }
    if (this.headSent) return this.#cut(failure.kind === "stale" ? failure.reason : `upstream_${failure.reason}`);
    if (failure.kind === "not_taken") this.#notTaken += 1;
    if (!this.#mayRepeat(failure, member)) return this.reject(rejectionOf(failure, this.#bound));
    if (this.#bound) return this.#try(member);
    this.#tried = [...this.#tried, member];
    this.#seek();
  }

  #mayRepeat(failure: Failure, member: MemberState): boolean {
    if (this.#bound && (failure.kind === "not_taken" || member.gone)) return false;
    if (this.body === "stream" && this.#bodyTouched) return false;
    if (failure.kind === "not_taken") return this.#notTaken < LIMITS.notTakenTries;
    return this.#repeatable() && this.#tries - this.#notTaken < this.route.policy.tries;
  }

  attemptUpgraded(status: number, headers: IncomingHttpHeaders, socket: Duplex): void {
    this.#limit?.stop();
    const member = this.heldBy;
    if (member === null) {
      socket.destroy();
      return;
    }
    this.headSent = true;
    this.core.ledger.upgrade(this);
    this.takeUpgrade(member, status, this.#headersFor(headers), socket);
  }

  /** An upgraded connection is over. */
  protected endUpgraded(outcome: Outcome, code: string): void {
    if (this.ended) return;
    const attempt = this.attempt;
    this.attempt = null;
    const member = this.#release();
    if (attempt !== null) this.core.discard(this, attempt.member, attempt.client);
    this.#end(outcome, code);
    if (member !== null) this.core.memberReleased(member);
  }

  /** The member drains, or its deadline moved; only upgraded connections need to know. */
  memberDraining(): void {}

  /** The member is gone with what it held; when it is fenced, whatever still comes from it is stale. */
  memberGone(isFenced: boolean): void {
    const attempt = this.attempt;
    if (attempt === null || this.ended) return;
    if (this.upgraded) return this.breakUpgraded(isFenced ? STALE.reason : "instance_gone");
    if (this.#bound && !this.headSent && !isFenced) return this.#rejectInstead("session_lost");
    attempt.abort();
    this.#fail(attempt, isFenced ? STALE : { kind: "lost", reason: "member_gone" });
  }

  /** The member's workload has a newer writer. */
  writerRaised(minAccepted: Epoch): void {
    if (this.#writerEpoch !== null && isStaleEpoch(this.#writerEpoch, minAccepted)) this.memberGone(true);
  }

  /** Nothing of an answer has gone out. */
  get isUnanswered(): boolean {
    return !this.ended && !this.headSent;
  }

  /** The client went away by itself. */
  clientGone(): void {
    if (this.ended || this.obligationState === "new") return;
    if (this.obligationState === "queued") this.#leaveQueue();
    const member = this.#giveUp();
    this.#end("completed", "client_gone");
    if (member !== null) this.core.memberReleased(member);
  }

  /** Ends the try that is under way; returns the member that it was at. */
  #giveUp(): MemberState | null {
    const attempt = this.attempt;
    if (attempt === null) return null;
    attempt.abort();
    this.attempt = null;
    this.#release();
    this.core.discard(this, attempt.member, attempt.client);
    return attempt.member;
  }

  #cutSlow(): void {
    const member = this.#giveUp();
    if (member === null) return;
    this.#cut("slow_reader");
    this.core.memberReleased(member);
  }

  /** The gateway stops and its patience is over. Upgraded connections are closed by their front. */
  stopNow(): void {
    if (this.ended || this.upgraded || this.#giveUp() === null) return;
    if (this.headSent) this.#cut("gateway_stopping");
    else this.reject("stopping");
  }

  #cut(code: string): void {
    this.breakOff();
    this.#end("cut", code);
  }

  /** An explicit error of the gateway itself. */
  protected reject(code: RejectionCode): void {
    const { status, headers, body } = this.#trino?.rejection(code, this.#tries > this.#notTaken) ?? rejectionAnswer(code);
    addWay(headers, this.#tries, this.#queuedMs);
    this.#end("rejected", code);
    this.sendWhole(status, headers, "", body);
  }

  #stopLimits(): void {
    this.#limit?.stop();
    this.#slow?.stop();
  }

  #end(outcome: Outcome, code: string): void {
    this.#stopLimits();
    this.body = null;
    this.core.ledger.end(this, outcome, code);
  }
}
