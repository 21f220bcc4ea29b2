/**
 * Callers that Kubernetes knows: a TokenReview says who it is, SubjectAccessReviews what it may do. Relevo's roles are verbs on one resource that exists for
 * RBAC alone, `controllers.relevo.dev`, so that a cluster's admin grants them as everything else is granted.
 *
 * 1. Tokens must be meant for Relevo (audience): one that is good for the API server is not taken, so a controller never holds what could act there.
 * 2. A gateway is bound to the pod of its token, an agent to the node of its pod: Kubernetes put both into the token.
 * 3. Answers are kept for a short time, so that a caller costs a few reviews a minute, and their number is bounded.
 * 4. While the API server cannot be asked, only answers that it gave count: for persons for some minutes; for gateways and agents, which the traffic needs
 *    during just such an outage, until a day is over. None counts for a token that has ended. Whoever has none is told to come again (503), never let in.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import type { Clock } from "../kernel/clock.ts";
import { describeError, RelevoError } from "../kernel/errors.ts";
import type { KubeApi, ResourceType } from "../kube/api.ts";
import { BoundedMap } from "./bounded-map.ts";
import type { Authenticator, Caller, TokenNeed } from "./callers.ts";
import { ROLES, type Role, roleFor, rolesFrom } from "./roles.ts";

export const ACCESS_GROUP = "relevo.dev";
/** No such kind is served: the name is there for RBAC. */
export const ACCESS_RESOURCE = "controllers";
export const ROLE_VERBS: Readonly<Record<Role, AccessVerb>> = { viewer: "view", operator: "operate", admin: "administer" };
/** `route`: be a gateway; `notify`: be an agent. */
export type AccessVerb = "view" | "operate" | "administer" | "route" | "notify";
export const DEFAULT_AUDIENCE = "relevo.dev";

export const FRESH_MS = 60_000;
/** What was refused is asked again sooner: a role may just have been granted. */
export const REFUSED_MS = 5_000;
/** Without the API server. */
export const PERSON_STALE_MS = 600_000;
const MACHINE_STALE_MAX_MS = 24 * 3_600_000;
const REVIEW_WITHIN_MS = 3_000;
/** After a review failed nobody waits for another one, for so long. */
const AWAY_MS = 2_000;
const ENTRIES_MAX = 4_096;
const REVIEWS_AT_ONCE = 32;
/** Longer ones are no tokens of Kubernetes. */
const TOKEN_CHARS_MAX = 16_384;

const TOKEN_REVIEWS: ResourceType = {
  group: "authentication.k8s.io",
  version: "v1",
  kind: "TokenReview",
  plural: "tokenreviews",
  namespaced: false,
};
const ACCESS_REVIEWS: ResourceType = {
  group: "authorization.k8s.io",
  version: "v1",
  kind: "SubjectAccessReview",
  plural: "subjectaccessreviews",
  namespaced: false,
};

const extraSchema = z.record(z.string(), z.array(z.string()));
const tokenReviewSchema = z.object({
  status: z.object({
    authenticated: z.boolean().default(false),
    user: z
      .object({
        /** Of a token that is none the server sends a user without a name. */
        username: z.string().default(""),
        uid: z.string().optional(),
        groups: z.array(z.string()).optional(),
        extra: extraSchema.optional(),
      })
      .optional(),
    audiences: z.array(z.string()).default([]),
  }),
});
const accessReviewSchema = z.object({ status: z.object({ allowed: z.boolean() }) });
type User = NonNullable<z.output<typeof tokenReviewSchema>["status"]["user"]>;

interface Kept<T> {
  readonly value: T;
  readonly at: number;
}

export interface KubernetesAccessOptions {
  readonly kube: KubeApi;
  readonly clock: Clock;
  readonly audience?: string | undefined;
}

export class KubernetesAccess implements Authenticator {
  readonly #kube: KubeApi;
  readonly #clock: Clock;
  readonly #audience: string;
  readonly #kept = new BoundedMap<string, Kept<unknown>>(ENTRIES_MAX);
  readonly #asking = new Map<string, Promise<unknown>>();
  #awayUntil = Number.NEGATIVE_INFINITY;
  #why: unknown;

  constructor({ kube, clock, audience = DEFAULT_AUDIENCE }: KubernetesAccessOptions) {
    this.#kube = kube;
    this.#clock = clock;
    this.#audience = audience;
  }

  async identify(token: string, need: TokenNeed): Promise<Caller | undefined> {
    if (token.length > TOKEN_CHARS_MAX) return undefined;
    const key = createHash("sha256").update(token).digest("base64");
    const endsInMs = untilEndOf(token, this.#clock.now());
    const isMachines = need === "gateway" || need === "sender";
    const user = await this.#ask(`who ${key}`, staleMsOf(isMachines, endsInMs), () => this.#reviewToken(token));
    if (user === null) return undefined;
    const may = (verb: AccessVerb) =>
      this.#ask(
        `${verb} ${key}`,
        staleMsOf(verb === "route" || verb === "notify", endsInMs),
        async () => (await this.#reviewAccess(user, verb)) || null,
      );
    return callerOf(user, await this.#granted(key, verbsFor(need), may));
  }

  /** The first of these that is granted. A yes that is kept comes before any question; one that cannot be asked matters only when no other is a yes. */
  async #granted(key: string, verbs: readonly AccessVerb[], may: (verb: AccessVerb) => Promise<unknown>): Promise<AccessVerb | undefined> {
    const kept = verbs.find((verb) => this.#isFreshYes(`${verb} ${key}`));
    if (kept !== undefined) return kept;
    const faults: unknown[] = [];
    for (const verb of verbs) {
      const isGranted = await may(verb).catch((fault: unknown) => void faults.push(fault));
      if (isGranted) return verb;
    }
    return faults.length > 0 ? Promise.reject(faults.at(-1)) : undefined;
  }

  #isFreshYes(key: string): boolean {
    const kept = this.#kept.get(key);
    return kept !== undefined && kept.value !== null && this.#clock.monotonic() - kept.at < FRESH_MS;
  }

  /** Null is a no. */
  async #ask<T>(key: string, staleMs: number, review: () => Promise<T | null>): Promise<T | null> {
    const kept = this.#kept.get(key) as Kept<T | null> | undefined;
    const ageMs = kept === undefined ? Number.POSITIVE_INFINITY : this.#clock.monotonic() - kept.at;
    if (kept !== undefined && ageMs < (kept.value === null ? REFUSED_MS : FRESH_MS)) return kept.value;
    try {
      if (this.#clock.monotonic() < this.#awayUntil) throw this.#why;
      const value = await this.#once(key, review);
      this.#kept.set(key, { value, at: this.#clock.monotonic() });
      return value;
    } catch (error) {
      // A no that is old is no answer: nobody is let in by it, and nobody should take it for the last word.
      if (kept !== undefined && kept.value !== null && ageMs < staleMs) return kept.value;
      throw unavailable(error);
    }
  }

  /** Many at once ask once. */
  async #once<T>(key: string, review: () => Promise<T | null>): Promise<T | null> {
    const running = this.#asking.get(key) as Promise<T | null> | undefined;
    if (running !== undefined) return running;
    if (this.#asking.size >= REVIEWS_AT_ONCE)
      throw new RelevoError("too_many_reviews", "too many callers are looked up already", { class: "retryable" });
    const asking = this.#within(review).finally(() => this.#asking.delete(key));
    this.#asking.set(key, asking);
    return asking;
  }

  async #within<T>(review: () => Promise<T>): Promise<T> {
    const ending = new AbortController();
    const limit = this.#clock.sleep(REVIEW_WITHIN_MS, ending.signal).then(() => {
      throw new RelevoError("review_timeout", `the API server did not answer within ${REVIEW_WITHIN_MS} ms`, { class: "retryable" });
    });
    limit.catch(() => undefined);
    try {
      return await Promise.race([review(), limit]);
    } catch (error) {
      this.#awayUntil = this.#clock.monotonic() + AWAY_MS;
      this.#why = error;
      throw error;
    } finally {
      ending.abort(new Error("answered"));
    }
  }

  async #reviewToken(token: string): Promise<User | null> {
    const spec = { token, audiences: [this.#audience] };
    const answer = await this.#kube.create(TOKEN_REVIEWS, { ...headOf(TOKEN_REVIEWS), spec });
    const { status } = tokenReviewSchema.parse(answer);
    // A server that does not know of audiences says none: the token is good for the API server, and not for us.
    const { authenticated, audiences, user } = status;
    return authenticated && audiences.includes(this.#audience) && user !== undefined && user.username !== "" ? user : null;
  }

  async #reviewAccess({ username, uid, groups, extra }: User, verb: AccessVerb): Promise<boolean> {
    const resourceAttributes = { group: ACCESS_GROUP, resource: ACCESS_RESOURCE, verb };
    const spec = { user: username, uid, groups, extra, resourceAttributes };
    const answer = await this.#kube.create(ACCESS_REVIEWS, { ...headOf(ACCESS_REVIEWS), spec });
    return accessReviewSchema.parse(answer).status.allowed;
  }
}

/** What does for it, in the order in which it is asked. */
function verbsFor(need: TokenNeed): readonly AccessVerb[] {
  const ofRoles = rolesFrom(roleFor(need)).map((role) => ROLE_VERBS[role]);
  if (need === "gateway") return ["route", ...ofRoles];
  return need === "sender" ? ["notify", ...ofRoles] : ofRoles;
}

function callerOf(user: User, verb: AccessVerb | undefined): Caller {
  const { username: name } = user;
  if (verb === "route") return { kind: "gateway", name, replica: extraOf(user, "authentication.kubernetes.io/pod-name") };
  if (verb === "notify") return { kind: "agent", name, node: extraOf(user, "authentication.kubernetes.io/node-name") };
  return { kind: "person", name, role: ROLES.find((role) => ROLE_VERBS[role] === verb) ?? null };
}

function headOf({ group, version, kind }: ResourceType) {
  return { apiVersion: `${group}/${version}`, kind, metadata: {} };
}

function extraOf({ extra }: User, key: string): string | null {
  return extra?.[key]?.[0] ?? null;
}

/** For how long after it was asked a kept answer counts, while nobody can be asked anew. A token that does not say when it ends is no machine's. */
function staleMsOf(isMachines: boolean, endsInMs: number | undefined): number {
  if (endsInMs === undefined) return PERSON_STALE_MS;
  if (endsInMs === 0) return 0;
  return isMachines ? MACHINE_STALE_MAX_MS : PERSON_STALE_MS;
}

/** As the token itself says; it was found good as a whole, so that may be believed. Undefined when it does not say. */
function untilEndOf(token: string, now: number): number | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
    const { exp } = z.object({ exp: z.number() }).parse(claims);
    return Math.max(0, exp * 1_000 - now);
  } catch {
    return undefined;
  }
}

function unavailable(cause: unknown): RelevoError {
  return new RelevoError("auth_unavailable", `Kubernetes cannot be asked who calls: ${describeError(cause)}.`, {
    class: "retryable",
    cause,
    todo: "try again when the API server answers; RELEVO_TOKEN and tokens of --token-file are taken meanwhile",
  });
}
