/** What the API server wrote down of Relevo's own calls: what was changed, how often everything of a kind was asked for, and what a replacement costs. */
import { z } from "zod";

const entrySchema = z.object({
  stage: z.string(),
  verb: z.string(),
  requestURI: z.string(),
  requestReceivedTimestamp: z.iso.datetime({ offset: true }).transform((text) => Date.parse(text)),
  impersonatedUser: z.object({ username: z.string() }).optional(),
  objectRef: z
    .object({
      apiGroup: z.string().default(""),
      resource: z.string().default(""),
      subresource: z.string().optional(),
      namespace: z.string().optional(),
      name: z.string().optional(),
    })
    .optional(),
  responseStatus: z.object({ code: z.int() }).optional(),
});
export type AuditEntry = z.output<typeof entrySchema>;

/** A line that is cut short at the end of the file is not there yet. */
export function parseAudit(text: string): readonly AuditEntry[] {
  const complete = text.slice(0, text.lastIndexOf("\n") + 1);
  return complete
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => entrySchema.parse(JSON.parse(line)))
    .filter(({ verb, stage }) => stage === (verb === "watch" ? "ResponseStarted" : "ResponseComplete"));
}

const CHANGES: ReadonlySet<string> = new Set(["create", "update", "patch", "delete", "deletecollection"]);

export interface OwnObjects {
  /** Names of the Deployments that the pools' instances are made of. */
  readonly instances: ReadonlySet<string>;
  /** Nodes against which there is evidence: those alone may be cordoned. */
  readonly nodes: ReadonlySet<string>;
  readonly accounts: ReadonlySet<string>;
}

/** Changes of what is not Relevo's own, but for the cordon of a node with evidence; as `verb resource name`. */
export function foreignChanges(entries: readonly AuditEntry[], own: OwnObjects): readonly string[] {
  return entries
    .filter(({ verb, responseStatus }) => CHANGES.has(verb) && (responseStatus?.code ?? 0) < 400)
    .filter((entry) => !isOwn(entry, own))
    .map(nameOf);
}

function isOwn({ verb, objectRef, impersonatedUser }: AuditEntry, { instances, nodes, accounts }: OwnObjects): boolean {
  if (objectRef === undefined) return false;
  const { resource, apiGroup, subresource, name = "" } = objectRef;
  switch (`${apiGroup}/${resource}`) {
    case "relevo.dev/pools":
      return verb === "patch" || verb === "update";
    case "/events":
    case "events.k8s.io/events":
      return verb === "create" || verb === "patch";
    case "authentication.k8s.io/tokenreviews":
    case "authorization.k8s.io/subjectaccessreviews":
    case "authorization.k8s.io/selfsubjectaccessreviews":
      return verb === "create"; // questions
    case "apps/deployments":
      // A create names its object in the body alone; who may make one is the account of the namespace.
      return (verb === "create" || (verb === "delete" && instances.has(name))) && accounts.has(impersonatedUser?.username ?? "");
    case "/pods":
      return verb === "patch" && subresource === undefined && [...instances].some((each) => name.startsWith(`${each}-`));
    case "/nodes":
      return verb === "patch" && subresource === undefined && nodes.has(name);
    default:
      return false;
  }
}

function nameOf({ verb, objectRef, requestURI }: Pick<AuditEntry, "verb" | "objectRef" | "requestURI">): string {
  if (objectRef === undefined) return `${verb} ${requestURI}`;
  const { resource, subresource, name } = objectRef;
  return [verb, subresource === undefined ? resource : `${resource}/${subresource}`, name].filter((word) => word !== undefined).join(" ");
}

/** A list of all of a kind, or a watch that begins with all; pages of one list are one. What is asked of one instance alone, by its label, is none. */
function isInventory({ verb, requestURI }: AuditEntry): boolean {
  const query = new URL(requestURI, "http://api").searchParams;
  if (query.has("continue") || query.get("labelSelector")?.includes("=")) return false;
  return verb === "list" || (verb === "watch" && query.get("sendInitialEvents") === "true");
}

/** Longer than any pass: what is within it is taken for one, which counts rather too much. */
const PASS_MS = 1_000;

/** The most inventories of one kind that fell into the time of one pass, begun in [from, to). */
export function inventoriesPerPassMax(entries: readonly AuditEntry[], [from, to]: readonly [number, number]): number {
  const times = new Map<string, number[]>();
  for (const entry of entries) {
    const at = entry.requestReceivedTimestamp;
    if (!isInventory(entry) || at < from || at >= to) continue;
    const kind = `${entry.objectRef?.apiGroup}/${entry.objectRef?.resource}`;
    times.set(kind, [...(times.get(kind) ?? []), at]);
  }
  return Math.max(
    0,
    ...[...times.values()].flatMap((all) => all.map((at) => all.filter((each) => each >= at && each < at + PASS_MS).length)),
  );
}

export interface RequestCount {
  /** `verb resource[/subresource]` */
  readonly request: string;
  readonly count: number;
}

/** All requests but standing watches, most frequent first. */
export function requestCounts(entries: readonly AuditEntry[], [from, to]: readonly [number, number]): readonly RequestCount[] {
  const counts = new Map<string, number>();
  for (const { verb, objectRef, requestReceivedTimestamp: at } of entries) {
    if (verb === "watch" || at < from || at >= to) continue;
    const request = nameOf({ verb, objectRef: objectRef && { ...objectRef, name: undefined }, requestURI: "" });
    counts.set(request, (counts.get(request) ?? 0) + 1);
  }
  return [...counts]
    .map(([request, count]) => ({ request, count }))
    .toSorted((a, b) => b.count - a.count || (a.request < b.request ? -1 : 1));
}
