/** How one request is tied to sessions: to the one that its token names, and to the one that its answer begins or ends. */
import { HEADERS } from "../model/membership.ts";
import type { RejectionCode } from "./codes.ts";
import type { GatewayCore } from "./core.ts";
import type { RequestHead } from "./headers.ts";
import { LIMITS } from "./limits.ts";
import type { MemberState } from "./membership.ts";
import { cookieValue, parseSessionHeader, type TokenClaims } from "./tokens.ts";

/** The token that a request brings along, in its header or as a cookie. */
export function tokenOf(head: RequestHead): string | undefined {
  const { token, cookie } = head;
  const found = token ?? (cookie?.includes(HEADERS.token) === true ? cookieValue(cookie, HEADERS.token) : undefined);
  return found === "" ? undefined : found;
}

export class SessionTie {
  readonly #core: GatewayCore;
  #claims: TokenClaims | null = null;
  #ends = false;
  #opened: { readonly id: string; readonly ttlMs: number } | null = null;

  constructor(core: GatewayCore) {
    this.#core = core;
  }

  /** True when the request may go to one instance only. */
  get binds(): boolean {
    return this.#claims !== null;
  }

  /** The member that the token names, or why there is none. Its session is in use from now on, also when another replica opened it. */
  follow(token: string, route: string): MemberState | RejectionCode {
    const verdict = this.#core.tokens.verify(token, this.#core.clock.now());
    if ("fault" in verdict) return verdict.fault;
    const { claims } = verdict;
    if (claims.route !== route) return "token_other_route";
    const member = this.#core.membership.find(claims.route, claims.instance, claims.incarnation);
    if (member === undefined || member.gone) return "session_lost";
    this.#claims = claims;
    this.#core.ledger.touchSession(claims.session, member, claims.ttlMs, this.#core.clock.monotonic());
    return member;
  }

  /** What the instance's `relevo-session` header asks for; adds to the answer what the client needs to come back. */
  answered(value: string, member: MemberState, headers: string[]): void {
    const wish = parseSessionHeader(value);
    if (wish === undefined) {
      this.#core.log.warn(
        { route: member.route, instance: member.instance, value },
        "an instance's relevo-session header is not understood",
      );
    } else if (wish.action === "end") {
      this.#ends = true;
      headers.push("set-cookie", `${HEADERS.token}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax`);
    } else {
      const token = this.#open(member, wish.ttlMs);
      headers.push(HEADERS.token, token, "set-cookie", `${HEADERS.token}=${token}; Path=/; HttpOnly; SameSite=Lax`);
    }
  }

  #open(member: MemberState, ttlMs: number): string {
    const { clock, ids, ledger, tokens } = this.#core;
    const id = ids.next("session");
    this.#opened = { id, ttlMs };
    ledger.touchSession(id, member, ttlMs, clock.monotonic());
    const { route, instance, incarnation } = member;
    return tokens.sign({ route, instance, incarnation, session: id, ttlMs, expiresAt: clock.now() + LIMITS.tokenLifeMs });
  }

  /** The request is over; call before its member lets go of it, so that what the member holds is never nothing in between. */
  settle(member: MemberState): void {
    const { clock, ledger } = this.#core;
    const now = clock.monotonic();
    if (this.#opened !== null) ledger.touchSession(this.#opened.id, member, this.#opened.ttlMs, now);
    if (this.#claims === null) return;
    if (this.#ends) ledger.endSession(this.#claims.session);
    else ledger.touchSession(this.#claims.session, member, this.#claims.ttlMs, now);
  }
}
