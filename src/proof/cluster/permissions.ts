/** Whether the controller may do what its switched-on capabilities need: it asks the API server about itself, and as the accounts that it acts for. */
import { isForbidden, isNotFound, type KubeApi, type ResourceType } from "../../kube/api.ts";
import { type Capability, type PermissionQuestion, questionsOf } from "../../kube/permissions.ts";
import { z } from "zod";
import { bad, type Finding, ok } from "../../model/finding.ts";
import { type ClusterFacts } from "./facts.ts";

const SELF_REVIEWS: ResourceType = {
  group: "authorization.k8s.io",
  version: "v1",
  kind: "SelfSubjectAccessReview",
  plural: "selfsubjectaccessreviews",
  namespaced: false,
};
const answerSchema = z.object({ status: z.object({ allowed: z.boolean() }) });
/** Each namespace costs about thirty questions. */
const NAMESPACES_MAX = 20;
const AT_ONCE = 8;
/** What does not work without the capability. */
const WITHOUT: Readonly<Record<Capability, string>> = {
  base: "nothing works without it",
  instances: "no instance can be made or deleted there",
  disruption: "nodes are not cordoned and pods not protected; instances are replaced all the same",
  karpenter: "drift and expiry are not seen, and no node's owner is known",
  events: "transitions are no Events, and why a pod finds no place is not known",
  apply: "relevo apply is refused; kubectl apply works",
  election: "replicas do not see each other",
  access_review: "callers of the HTTP API cannot be told apart",
  calls: "gateways and agents are refused",
  agent: "agents cannot tell their instances anything while the controller is away",
  freeze: "a freeze by ConfigMap is not seen",
  doctor: "relevo doctor sees less",
  scaling: "no target is taken over or scaled, and who else sets the replicas of instances is not seen",
  members: "a worker of a Trino cluster stays on a node that goes, until it is lost with it",
  external_metrics: "signals of kind external-metric are refused",
};
/** Without these a claim of Relevo's does not hold. */
const NEEDED: readonly Capability[] = ["base", "instances", "disruption", "karpenter", "election"];

/** What this controller, with these pools, makes use of. */
export function switchedOn(facts: ClusterFacts): readonly Capability[] {
  const modes = new Set(facts.pools().map(({ document }) => document.spec.disruption.mode));
  const optional: readonly (readonly [Capability, boolean])[] = [
    ["instances", facts.pools().length > 0],
    ["disruption", modes.has("Act")],
    ["karpenter", facts.pools().some(({ document }) => document.spec.disruption.provisioners.includes("karpenter"))],
    ["election", facts.isShared],
    ["scaling", facts.pools().some(({ document }) => document.spec.target !== undefined)],
    ["members", facts.pools().some(({ document }) => document.spec.driver === "trino" && document.spec.disruption.mode === "Act")],
    ["external_metrics", facts.pools().some(({ document }) => document.spec.scale?.signal.kind === "external-metric")],
  ];
  return ["base", ...optional.flatMap(([capability, isOn]) => (isOn ? [capability] : [])), ...facts.capabilities];
}

export async function checkPermissions(facts: ClusterFacts): Promise<readonly Finding[]> {
  const namespaces = [...new Set(facts.pools().map(({ document }) => document.metadata.namespace))].toSorted();
  const questions = questionsOf(switchedOn(facts), {
    ownNamespace: facts.ownNamespace ?? "default",
    poolNamespaces: namespaces.slice(0, NAMESPACES_MAX),
  }).filter(({ as }) => as === "controller" || as === "instances");
  const accounts = accountsOf(facts);
  const asked = questions.flatMap((question) => {
    if (question.as === "controller" && question.verb !== "impersonate") return [{ question, as: null }];
    // Where Pools name no account the controller makes their objects by itself.
    const names = accounts.get(question.namespace ?? "") ?? [null];
    if (question.verb === "impersonate")
      return names.flatMap((name) => (name === null ? [] : [{ question: { ...question, name }, as: null }]));
    return names.map((as) => ({ question, as }));
  });
  let answers: readonly boolean[];
  try {
    answers = await inTurns(asked, ({ question, as }) => isAllowed(facts.kube, question, as));
  } catch (error) {
    if (isNotFound(error)) return [ok("permissions", "this cluster has no RBAC to ask about")];
    throw error;
  }
  const missing = asked.filter((_, index) => answers[index] === false);
  const byCapability = Map.groupBy(missing, ({ question }) => question.capability);
  const findings = [...byCapability].map(([capability, rows]) =>
    bad(
      `permissions for ${capability}`,
      NEEDED.includes(capability) ? "refused" : "warning",
      `missing: ${rows.map(({ question, as }) => sentenceOf(question, as)).join("; ")}`,
      `${WITHOUT[capability]}; kubectl apply -k deploy/ grants it`,
    ),
  );
  const beyond = namespaces.length - NAMESPACES_MAX;
  if (beyond > 0)
    findings.push(
      bad(
        "permissions",
        "warning",
        `${beyond} namespaces with Pools were not asked about`,
        "see the reasons of their pools: what is refused is named there",
      ),
    );
  return findings.length > 0 ? findings : [ok("permissions", `all ${asked.length} that were asked about are granted`)];
}

function accountsOf(facts: ClusterFacts): ReadonlyMap<string, readonly (string | null)[]> {
  const byNamespace = Map.groupBy(facts.pools(), ({ document }) => document.metadata.namespace);
  return new Map(
    [...byNamespace].map(([namespace, pools]) => [
      namespace,
      [...new Set(pools.map(({ document }) => document.spec.serviceAccountName ?? null))],
    ]),
  );
}

async function isAllowed(kube: KubeApi, question: PermissionQuestion, account: string | null): Promise<boolean> {
  const { namespace, group, resource, subresource, verb, name } = question;
  const resourceAttributes = {
    group,
    resource,
    verb,
    ...(namespace && { namespace }),
    ...(subresource && { subresource }),
    ...(name && { name }),
  };
  const caller = account === null ? kube : (kube.as?.(`system:serviceaccount:${namespace ?? ""}:${account}`) ?? kube);
  try {
    const review = await caller.create(SELF_REVIEWS, {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      metadata: {},
      spec: { resourceAttributes },
    });
    return answerSchema.parse(review).status.allowed;
  } catch (error) {
    // It may not act for the account: then it may not do this as it either.
    if (account !== null && isForbidden(error)) return false;
    throw error;
  }
}

function sentenceOf({ namespace, group, resource, subresource, verb, name }: PermissionQuestion, account: string | null): string {
  const kind = `${resource}${subresource === undefined ? "" : `/${subresource}`}${group === "" ? "" : `.${group}`}`;
  const where = namespace === undefined ? "" : ` in ${namespace}`;
  return `${verb} ${kind}${name === undefined ? "" : ` ${name}`}${where}${account === null ? "" : ` as ${account}`}`;
}

/** In order, so many at once: an examination must not stand before a cordon. */
async function inTurns<T, R>(items: readonly T[], ask: (item: T) => Promise<R>): Promise<readonly R[]> {
  const answers: R[] = [];
  for (let from = 0; from < items.length; from += AT_ONCE) answers.push(...(await Promise.all(items.slice(from, from + AT_ONCE).map(ask))));
  return answers;
}
