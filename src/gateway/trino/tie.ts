/**
 * How one request of a Trino client is tied to a cluster, and what its answer says of open work.
 *
 * 1. Whatever is needed to find the cluster is in the request: the coordinator's id in a query id, a signed token in a transaction's id or a segment's address.
 * 2. A query, a transaction and a segment that a client may still ask for are sessions of their member, opened by what a cluster has answered, never by what a
 *    client has asked. They end with the last page, a cancel, the end of the transaction, the acknowledgement; else with their time.
 * 3. A transaction's id leaves with a token and comes back without: nothing but what this gateway signed is passed on.
 */
import type { RejectionAnswer, RejectionCode } from "../codes.ts";
import { rejectionAnswer } from "../codes.ts";
import type { GatewayCore } from "../core.ts";
import { type AnswerHeaders, firstValue, type RequestHead } from "../headers.ts";
import { LIMITS } from "../limits.ts";
import type { MemberState, RouteState } from "../membership.ts";
import type { TokenClaims, TokenFault } from "../tokens.ts";
import { failedPage, tryAgain } from "./answers.ts";
import { beginOfQuery, memberOfCoordinator } from "./coordinators.ts";
import type { PageHead } from "./head-scanner.ts";
import { PageReader } from "./page-reader.ts";
import { type QueryTarget, targetOf, type TrinoTarget } from "./paths.ts";
import { readTrinoHeaders, removeHeader, replaceHeader, type TrinoHeaders } from "./request-headers.ts";
import { chooseRoute, restOf } from "./routing.ts";
import { signSegments, withoutToken } from "./segments.ts";

const TRANSACTION = "x-trino-transaction-id";
const STARTED = "x-trino-started-transaction-id";
const CLEARED = "x-trino-clear-transaction-id";

interface Session {
  readonly id: string;
  readonly ttlMs: number;
}

export class TrinoTie {
  readonly route: RouteState;
  readonly path: string;
  readonly head: RequestHead;
  /** Why it can go nowhere. */
  readonly fault: RejectionCode | null;
  /** The only one that it may go to; null: any of its route. */
  readonly member: MemberState | null;

  readonly #core: GatewayCore;
  readonly #target: TrinoTarget;
  readonly #base: string;
  /** Of the request: its transaction, or its segment. */
  #session: Session | null = null;
  /** Of the answer. */
  #query: Session | null = null;
  #started: Session | null = null;
  #isLast = false;
  #isCleared = false;
  #isAcknowledged = false;

  /** `found` is the route that the host alone leads to. Changes `head.headers` to what the cluster is to see. */
  constructor(core: GatewayCore, found: RouteState, method: string, path: string, head: RequestHead) {
    this.#core = core;
    this.#target = targetOf(method, path);
    // No key makes a statement repeatable: Trino does not know them.
    this.head = head.hasKey ? { ...head, hasKey: false } : head;
    const said = readTrinoHeaders(head.headers);
    this.#base = said.base;
    const routes = core.trinoRoutesFor(head.host, found);
    const segment = this.#target.kind === "segment" ? withoutToken(path) : { path, token: undefined };
    this.path = segment.path;
    const place = this.#seek(routes, said, segment.token);
    this.fault = typeof place === "string" ? place : null;
    this.member = typeof place === "object" && "health" in place ? place : null;
    this.route = typeof place === "string" ? found : "health" in place ? (core.membership.routes.get(place.route) ?? found) : place;
    if (this.member !== null && this.#session !== null) this.#touch(this.#session, this.member);
  }

  /** True when the request may go to one member only. */
  get binds(): boolean {
    return this.member !== null;
  }

  /** Until the head of an answer. A coordinator holds a poll back for a second or so; it may be asked again. */
  get answerWithinMs(): number {
    return this.#target.kind === "query" && this.#target.does === "page" ? LIMITS.trinoPollMs : LIMITS.answerHeadMs;
  }

  // ---- the request

  #seek(routes: readonly RouteState[], said: TrinoHeaders, segmentToken: string | undefined): MemberState | RouteState | RejectionCode {
    const target = this.#target;
    switch (target.kind) {
      case "query":
        this.#hideTransaction(said.transaction);
        return this.#seekQuery(routes, target);
      case "segment":
        return this.#seekSegment(routes, segmentToken);
      case "statement":
        if (said.transaction !== undefined) return this.#seekTransaction(routes, said.transaction);
        return chooseRoute(routes, said) ?? "no_group";
      case "other":
        this.#hideTransaction(said.transaction);
        return restOf(routes) ?? routes[0] ?? "no_route";
      default:
        return target satisfies never;
    }
  }

  #seekQuery(routes: readonly RouteState[], { queryId, coordinator }: QueryTarget): MemberState | RejectionCode {
    const found = memberOfCoordinator(routes, coordinator);
    if (found === "ambiguous") return "coordinator_ambiguous";
    if (found === "gone" || (found === "unknown" && !this.#mayComeToKnow(beginOfQuery(queryId)))) return "query_lost";
    return found === "unknown" ? "cluster_unknown" : found;
  }

  /** Another replica may have heard before this one of a cluster that was just admitted; one that is cut off hears of none. */
  #mayComeToKnow(begunAt: number): boolean {
    return this.#core.membership.cutOff || Math.abs(this.#core.clock.now() - begunAt) < LIMITS.trinoHeardWithinMs;
  }

  #seekTransaction(routes: readonly RouteState[], given: string): MemberState | RejectionCode {
    const at = given.indexOf(".");
    if (at <= 0) return "transaction_unknown";
    const verdict = this.#verify(given.slice(at + 1), routes);
    switch (verdict) {
      case "lost":
        return "transaction_lost";
      case "token_malformed":
        return "transaction_unknown";
      case "token_forged":
      case "token_expired":
        return "transaction_forged";
      case "cluster_unknown":
        return verdict;
      default:
    }
    const id = given.slice(0, at);
    if (verdict.claims.session !== id) return "transaction_forged";
    replaceHeader(this.head.headers, TRANSACTION, id);
    this.#session = { id, ttlMs: verdict.claims.ttlMs };
    return verdict.member;
  }

  /** Polls carry it too with some clients, and mean nothing by it. */
  #hideTransaction(given: string | undefined): void {
    if (given === undefined) return;
    const at = given.indexOf(".");
    if (at > 0) replaceHeader(this.head.headers, TRANSACTION, given.slice(0, at));
  }

  #seekSegment(routes: readonly RouteState[], token: string | undefined): MemberState | RejectionCode {
    if (token === undefined) return "segment_unknown";
    const verdict = this.#verify(token, routes);
    if (verdict === "cluster_unknown") return verdict;
    if (typeof verdict === "string") return verdict === "lost" ? "segment_lost" : "segment_unknown";
    if (!verdict.claims.session.startsWith("segment")) return "segment_unknown";
    this.#session = { id: verdict.claims.session, ttlMs: verdict.claims.ttlMs };
    return verdict.member;
  }

  #verify(
    token: string,
    routes: readonly RouteState[],
  ): { readonly claims: TokenClaims; readonly member: MemberState } | TokenFault | "lost" | "cluster_unknown" {
    const verdict = this.#core.tokens.verify(token, this.#core.clock.now());
    if ("fault" in verdict) return verdict.fault;
    const { claims } = verdict;
    const member = this.#core.membership.find(claims.route, claims.instance, claims.incarnation);
    if (!routes.some((route) => route.route === claims.route)) return "token_forged";
    if (member === undefined && this.#mayComeToKnow(claims.expiresAt - LIMITS.tokenLifeMs)) return "cluster_unknown";
    return member === undefined || member.gone ? "lost" : { claims, member };
  }

  // ---- the answer

  /** What the client gets instead of an answer with this status; null: the answer. */
  insteadOf(status: number): RejectionCode | null {
    return status === 404 && this.#target.kind === "query" && this.#target.does === "page" ? "query_unknown" : null;
  }

  /**
   * Changes `headers`, those for the client, and returns what must stand in the way of the answer's body; null: nothing.
   */
  answered(status: number, given: AnswerHeaders, member: MemberState, headers: string[]): PageReader | null {
    this.#isLast = false;
    this.#query = null;
    this.#readTransaction(given, member, headers);
    const isGood = status >= 200 && status < 400;
    const target = this.#target;
    if (target.kind === "segment") this.#isAcknowledged = target.acks && isGood;
    if (target.kind === "query" && target.does === "end" && isGood) this.#closesWith(target.queryId);
    if (target.kind === "query" && target.does === "beat" && isGood) this.#opens(target.queryId, member);
    if (status !== 200 || !(target.kind === "statement" || (target.kind === "query" && target.does === "page"))) return null;
    return this.#readerOf(firstValue(given, "content-encoding"), member, headers);
  }

  #readerOf(encoding: string | undefined, member: MemberState, headers: string[]): PageReader | null {
    const isGzip = encoding === "gzip";
    if (!isGzip && encoding !== undefined && encoding !== "identity") {
      this.#headKnown({ id: undefined, hasNext: undefined, data: "unknown" }, member);
      return null;
    }
    return new PageReader({
      isGzip,
      headKnown: (head) => this.#headKnown(head, member),
      rewritten: (page) => {
        const changed = signSegments(page, this.#base, () => this.#openSegment(member));
        if (changed === undefined) return undefined;
        removeHeader(headers, "content-encoding");
        removeHeader(headers, "content-length");
        headers.push("content-length", String(changed.length));
        return changed;
      },
    });
  }

  /** Of a page that cannot be read the query counts as open. */
  #headKnown({ id, hasNext }: PageHead, member: MemberState): void {
    const queryId = this.#target.kind === "query" ? this.#target.queryId : id;
    if (queryId === undefined) return;
    if (hasNext === false) return this.#closesWith(queryId);
    this.#opens(queryId, member);
    if (this.#target.kind === "statement" && this.#session !== null) this.#core.trinoTransactions.remember(queryId, this.#session.id);
  }

  #closesWith(queryId: string): void {
    this.#query = { id: queryId, ttlMs: 0 };
    this.#isLast = true;
  }

  #opens(queryId: string, member: MemberState): void {
    this.#query = { id: queryId, ttlMs: this.#times.clientTimeoutMs };
    this.#touch(this.#query, member);
  }

  #readTransaction(given: AnswerHeaders, member: MemberState, headers: string[]): void {
    const started = firstValue(given, STARTED);
    this.#started = null;
    if (started !== undefined) {
      this.#started = { id: started, ttlMs: this.#times.transactionTimeoutMs };
      replaceHeader(headers, STARTED, `${started}.${this.#sign(this.#started, member)}`);
      this.#touch(this.#started, member);
    }
    this.#isCleared = firstValue(given, CLEARED) === "true";
  }

  #openSegment(member: MemberState): string {
    const session = { id: this.#core.ids.next("segment"), ttlMs: this.#times.clientTimeoutMs };
    this.#touch(session, member);
    return this.#sign(session, member);
  }

  #sign({ id, ttlMs }: Session, { route, instance, incarnation }: MemberState): string {
    const { clock, tokens } = this.#core;
    return tokens.sign({ route, instance, incarnation, session: id, ttlMs, expiresAt: clock.now() + LIMITS.tokenLifeMs });
  }

  get #times(): { readonly clientTimeoutMs: number; readonly transactionTimeoutMs: number } {
    return this.route.policy.trino ?? { clientTimeoutMs: LIMITS.trinoTimeoutMs, transactionTimeoutMs: LIMITS.trinoTimeoutMs };
  }

  #touch({ id, ttlMs }: Session, member: MemberState): void {
    if (member.gone) return;
    this.#core.ledger.touchSession(id, member, ttlMs, this.#core.clock.monotonic());
  }

  /**
   * The request is over; call before its member lets go of it, so that what the member holds is never nothing in between. What did not go out whole ends nothing:
   * its client will ask again.
   */
  settle(member: MemberState, isWhole: boolean): void {
    const { ledger, trinoTransactions } = this.#core;
    const query = this.#query;
    if (this.#session !== null) {
      if (isWhole && this.#isAcknowledged) ledger.endSession(this.#session.id);
      else this.#touch(this.#session, member);
    }
    if (this.#started !== null) this.#touch(this.#started, member);
    if (query !== null && !this.#isLast) this.#touch(query, member);
    if (!isWhole) return;
    if (this.#isCleared) {
      const known = this.#session?.id ?? this.#ofQuery();
      if (known !== undefined) ledger.endSession(known);
    }
    if (query === null || !this.#isLast) return;
    ledger.endSession(query.id);
    trinoTransactions.forget(query.id);
  }

  #ofQuery(): string | undefined {
    return this.#target.kind === "query" ? this.#core.trinoTransactions.of(this.#target.queryId) : undefined;
  }

  // ---- errors

  /** `mayRun`: a cluster may have taken the request. */
  rejection(code: RejectionCode, mayRun: boolean): RejectionAnswer {
    const target = this.#target;
    const answer = rejectionAnswer(code);
    const isTransient = answer.status >= 500;
    if (target.kind === "statement") {
      return isTransient && !mayRun ? tryAgain(code) : failedPage(code, { queryId: this.#core.ids.next("statement"), base: this.#base });
    }
    // A page may be asked for again: its client does so by itself.
    if (target.kind !== "query" || target.does !== "page" || isTransient) return answer;
    return failedPage(code, { queryId: target.queryId, base: this.#base });
  }
}
