/** Callers that Kubernetes knows: how often it is asked, and what holds while it cannot be. */
import { expect, test } from "vitest";
import { RelevoError } from "../kernel/errors.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import type { KubeApi, KubeObject, KubeObjectDraft } from "../kube/api.ts";
import { FRESH_MS, KubernetesAccess, PERSON_STALE_MS, REFUSED_MS } from "./kubernetes-access.ts";

const NOON = Date.UTC(2030, 0, 1, 12);

interface Known {
  readonly username: string;
  readonly verbs: string[];
  readonly extra?: Readonly<Record<string, string[]>>;
  readonly audiences?: readonly string[];
}

/** An API server of two questions. */
class Reviews {
  readonly asked: string[] = [];
  away: RelevoError | "silent" | undefined;
  readonly known: Record<string, Known> = {};

  readonly create = async (_type: unknown, draft: KubeObjectDraft): Promise<KubeObject> => {
    const spec = draft.spec as Record<string, never>;
    const attributes = spec.resourceAttributes as { verb?: string; group?: string; resource?: string } | undefined;
    this.asked.push(attributes === undefined ? "who" : `${spec.user} ${attributes.verb} ${attributes.group}/${attributes.resource}`);
    if (this.away === "silent") return new Promise(() => undefined);
    if (this.away !== undefined) throw this.away;
    if (attributes !== undefined) {
      const found = Object.values(this.known).find(({ username }) => username === spec.user);
      return answer({ allowed: found?.verbs.includes(attributes.verb ?? "") ?? false });
    }
    const found = this.known[spec.token ?? ""];
    if (found === undefined) return answer({ user: {}, error: "unknown" });
    const { username, extra, audiences = ["relevo.dev"] } = found;
    return answer({ authenticated: true, user: { username, uid: "u", groups: ["g"], extra }, audiences });
  };
}

function answer(status: object): KubeObject {
  return {
    apiVersion: "x/v1",
    kind: "X",
    metadata: { name: "", uid: "", resourceVersion: "", creationTimestamp: "" },
    status,
  } as KubeObject;
}

function aDesk() {
  const clock = new VirtualClock(NOON);
  const reviews = new Reviews();
  const access = new KubernetesAccess({ kube: { create: reviews.create } as unknown as KubeApi, clock });
  return { clock, reviews, access };
}

const AWAY = new RelevoError("kube_unreachable", "the API server does not answer", { class: "retryable" });

/** A token as Kubernetes makes them, of which only the end is read here. */
function jwt(endsAt: number, name = "x"): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "RS256" })}.${part({ exp: endsAt / 1_000, name })}.sig`;
}

test("a person has the role that covers the route, also by a verb above it", async () => {
  const { reviews, access } = aDesk();
  reviews.known.v = { username: "vera", verbs: ["view"] };
  reviews.known.a = { username: "ada", verbs: ["administer"] };
  reviews.known.n = { username: "nora", verbs: [] };

  expect(await access.identify("v", "viewer")).toEqual({ kind: "person", name: "vera", role: "viewer" });
  expect(await access.identify("v", "operator")).toEqual({ kind: "person", name: "vera", role: null });
  expect(await access.identify("a", "viewer")).toEqual({ kind: "person", name: "ada", role: "admin" });
  expect(await access.identify("n", "viewer")).toEqual({ kind: "person", name: "nora", role: null });
  expect(await access.identify("unknown", "viewer")).toBeUndefined();
  expect(reviews.asked.slice(0, 2)).toEqual(["who", "vera view relevo.dev/controllers"]);
});

test("a gateway is bound to its pod and an agent to its node, as Kubernetes wrote them into the token", async () => {
  const { reviews, access } = aDesk();
  const extra = { "authentication.kubernetes.io/pod-name": ["gw-abc"], "authentication.kubernetes.io/node-name": ["node-a"] };
  reviews.known.g = { username: "system:serviceaccount:relevo-system:relevo-gateway", verbs: ["route"], extra };
  reviews.known.a = { username: "system:serviceaccount:relevo-system:relevo-agent", verbs: ["notify"], extra };
  reviews.known.loose = { username: "system:serviceaccount:relevo-system:relevo-gateway", verbs: ["route"] };

  expect(await access.identify("g", "gateway")).toMatchObject({ kind: "gateway", replica: "gw-abc" });
  expect(await access.identify("a", "sender")).toMatchObject({ kind: "agent", node: "node-a" });
  expect(await access.identify("g", "viewer")).toMatchObject({ kind: "person", role: null });
  expect(await access.identify("a", "gateway")).toMatchObject({ kind: "person", role: null });
  expect(await access.identify("loose", "gateway")).toMatchObject({ kind: "gateway", replica: null });
});

test("a token that is not meant for Relevo is none, also one that is good for the API server", async () => {
  const { reviews, access } = aDesk();
  reviews.known.other = { username: "ada", verbs: ["administer"], audiences: ["other"] };
  reviews.known.api = { username: "ada", verbs: ["administer"], audiences: [] };
  expect(await access.identify("other", "viewer")).toBeUndefined();
  expect(await access.identify("api", "viewer")).toBeUndefined();
});

test("a caller costs two reviews a minute, however often it calls; many at once ask once", async () => {
  const { clock, reviews, access } = aDesk();
  reviews.known.v = { username: "vera", verbs: ["view"] };
  await Promise.all(Array.from({ length: 20 }, () => access.identify("v", "viewer")));
  expect(reviews.asked.length).toBe(2);
  await clock.advance(FRESH_MS - 1);
  await access.identify("v", "viewer");
  expect(reviews.asked.length).toBe(2);
  await clock.advance(1);
  await access.identify("v", "viewer");
  expect(reviews.asked.length).toBe(4);
});

test("what was refused is asked again after some seconds: a role may just have been granted", async () => {
  const { clock, reviews, access } = aDesk();
  const nora = { username: "nora", verbs: [] as string[] };
  reviews.known.n = nora;
  expect(await access.identify("n", "viewer")).toMatchObject({ role: null });
  nora.verbs.push("view");
  expect(await access.identify("n", "viewer")).toMatchObject({ role: null });
  await clock.advance(REFUSED_MS);
  expect(await access.identify("n", "viewer")).toMatchObject({ role: "viewer" });
});

test("while the API server is away only what it said counts, for a time; others are told to come again", async () => {
  const { clock, reviews, access } = aDesk();
  reviews.known.v = { username: "vera", verbs: ["view"] };
  await access.identify("v", "viewer");
  reviews.away = AWAY;
  await clock.advance(FRESH_MS);

  expect(await access.identify("v", "viewer")).toMatchObject({ role: "viewer" });
  await expect(access.identify("v", "operator")).rejects.toMatchObject({ code: "auth_unavailable", class: "retryable" });
  await expect(access.identify("stranger", "viewer")).rejects.toMatchObject({ code: "auth_unavailable" });
  await clock.advance(PERSON_STALE_MS - FRESH_MS);
  await expect(access.identify("v", "viewer")).rejects.toMatchObject({ code: "auth_unavailable" });
});

test("a role that comes by a higher verb costs no question each time, and holds while the API server is away", async () => {
  const { clock, reviews, access } = aDesk();
  reviews.known.o = { username: "olaf", verbs: ["operate"] };
  await access.identify("o", "viewer");
  await clock.advance(REFUSED_MS);
  expect(await access.identify("o", "viewer")).toMatchObject({ role: "operator" });
  expect(reviews.asked.length).toBe(3);
  reviews.away = AWAY;
  await clock.advance(FRESH_MS);
  expect(await access.identify("o", "viewer")).toMatchObject({ role: "operator" });
  expect(await access.identify("o", "sender")).toMatchObject({ role: "operator" });
  await expect(access.identify("o", "admin")).rejects.toMatchObject({ code: "auth_unavailable" });
});

test("gateways and agents are known until their token ends: traffic needs them during just such an outage", async () => {
  const { clock, reviews, access } = aDesk();
  const hour = 3_600_000;
  const token = jwt(NOON + 2 * hour);
  reviews.known[token] = { username: "gw", verbs: ["route"], extra: { "authentication.kubernetes.io/pod-name": ["gw-abc"] } };
  await access.identify(token, "gateway");
  reviews.away = AWAY;

  await clock.advance(hour);
  expect(await access.identify(token, "gateway")).toMatchObject({ kind: "gateway", replica: "gw-abc" });
  await clock.advance(hour);
  await expect(access.identify(token, "gateway")).rejects.toMatchObject({ code: "auth_unavailable" });
});

test("a token that has ended lets nobody in while the API server is away, and a person's is believed for minutes, whatever it is used for", async () => {
  const { clock, reviews, access } = aDesk();
  const short = jwt(NOON + 2 * FRESH_MS, "short");
  const long = jwt(NOON + 24 * 3_600_000, "long");
  reviews.known[short] = { username: "vera", verbs: ["view"] };
  reviews.known[long] = { username: "olaf", verbs: ["operate"] };
  await access.identify(short, "viewer");
  await access.identify(long, "sender");
  reviews.away = AWAY;

  await clock.advance(2 * FRESH_MS - 1);
  expect(await access.identify(short, "viewer")).toMatchObject({ name: "vera" });
  await clock.advance(1);
  await expect(access.identify(short, "viewer")).rejects.toMatchObject({ code: "auth_unavailable" });
  expect(await access.identify(long, "sender")).toMatchObject({ name: "olaf" });
  await clock.advance(PERSON_STALE_MS);
  await expect(access.identify(long, "sender")).rejects.toMatchObject({ code: "auth_unavailable" });
});

test("a server that says nothing is given up after some seconds, and nobody else waits for it then", async () => {
  const { clock, reviews, access } = aDesk();
  reviews.away = "silent";
  const first = access.identify("v", "viewer").catch((error: unknown) => error);
  await clock.advance(3_000);
  expect(await first).toMatchObject({ code: "auth_unavailable" });
  await expect(access.identify("w", "viewer")).rejects.toMatchObject({ code: "auth_unavailable" });
  expect(reviews.asked.length).toBe(1);
});

test("what is kept is bounded: many tokens of strangers push nobody's memory up", async () => {
  const { reviews, access } = aDesk();
  for (let stranger = 0; stranger < 5_000; stranger++) await access.identify(`stranger-${stranger}`, "viewer");
  const asked = reviews.asked.length;
  await access.identify("stranger-0", "viewer");
  await access.identify("stranger-4999", "viewer");
  expect(reviews.asked.length - asked).toBe(1);
  expect(await access.identify("x".repeat(20_000), "viewer")).toBeUndefined();
});
