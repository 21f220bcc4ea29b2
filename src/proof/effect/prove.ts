/**
 * Proof of the effective configuration of a pool's Trino clusters (T1, T2, T15, T18): each key of each role in each pod, with what was seen at each hop.
 *
 * Changes nothing. Each look is taken once an instance or pod; what cannot be looked at is said at its hop and never assumed (I24).
 */
import type { Instant } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import type { KubeApi } from "../../kube/api.ts";
import { PODS } from "../../kube/resources.ts";
import { type KubePod, parsePod } from "../../kube/types.ts";
import { type EffectReport, type EffectRow, type HopSeen, TRINO_ROLES, type TrinoRole } from "../../model/effect.ts";
import type { PoolDocument } from "../../model/pool.ts";
import { judge, type ProcessSays, type Seen } from "./judge.ts";
import type { PodFile, PodInside, PodSight, ServerProbe, ServerProbes, SessionProperty } from "./ports.ts";
import { nameOfOption, type Setting, settingsOf, shownValue } from "./settings.ts";
import { idOf, type Rendered, type Source, sourceOf } from "./source.ts";

export interface EffectParts {
  readonly kube: Pick<KubeApi, "get" | "list">;
  readonly sight: PodSight;
  readonly probes: ServerProbes;
}

export interface EffectInstance {
  readonly id: string;
  readonly blueprintHash: string;
  readonly site: string;
}

export interface EffectSubject {
  readonly document: PoolDocument;
  readonly blueprintHash: string;
  /** Those that are there and not leaving. */
  readonly instances: readonly EffectInstance[];
}

/** Of a pool of another driver nothing is proven: an empty report. */
export async function proveEffect(subject: EffectSubject, parts: EffectParts): Promise<EffectReport> {
  if (subject.document.spec.driver !== "trino") return { rows: [], notes: [] };
  const reports: EffectReport[] = [];
  for (const instance of subject.instances) reports.push(await proveInstance(instance, subject, parts));
  return { rows: reports.flatMap(({ rows }) => rows), notes: reports.flatMap(({ notes }) => notes) };
}

async function proveInstance(
  instance: EffectInstance,
  { document, blueprintHash }: EffectSubject,
  parts: EffectParts,
): Promise<EffectReport> {
  const { namespace, name: pool } = document.metadata;
  const objects = filled(document.spec.blueprint.objects, { instance: instance.id, pool, site: instance.site });
  const source = await sourceOf({ namespace, instance: instance.id, objects }, parts.kube);
  const declared = withPolicy(source.declared, document);
  const pods = await podsOf(source, namespace, parts.kube);
  const port = document.spec.service.port;
  const user = document.spec.trino.user;
  const coordinator = pods.find(({ role, pod }) => role === "coordinator" && pod.status.podIP !== null)?.pod;
  const engine = coordinator === undefined ? undefined : new Engine(parts.probes(`http://${hostOf(coordinator)}:${port}`, user));
  const rows: EffectRow[] = [];
  try {
    for (const role of TRINO_ROLES) {
      const ofRole = declared.filter((each) => each.role === role);
      const found = pods.filter((each) => each.role === role);
      const looks = found.length === 0 ? [NO_POD] : await Promise.all(found.map(({ pod }) => lookInto(pod, parts, { port, user })));
      for (const look of looks)
        for (const setting of ofRole)
          rows.push(
            await rowOf({ instance, isMadeBefore: instance.blueprintHash !== blueprintHash, source, setting, look, engine, all: declared }),
          );
    }
  } finally {
    await engine?.close();
  }
  return { rows, notes: source.notes.map((note) => ({ instance: instance.id, ...note })) };
}

/** A policy that only `spec.trino` names is declared, too: it needs its place in the coordinator's configuration. */
function withPolicy(declared: readonly Setting[], { spec }: PoolDocument): readonly Setting[] {
  const { retryPolicy: value } = spec.trino;
  const setting = { kind: "config", role: "coordinator", file: "config.properties", name: RETRY_POLICY, value } as const;
  return value === "NONE" || declared.some((each) => idOf(each) === idOf(setting)) ? declared : [...declared, setting];
}

const RETRY_POLICY = "retry-policy";
const BASE_DIRECTORIES = "exchange.base-directories";

function filled(
  objects: readonly unknown[],
  { instance, pool, site }: { readonly instance: string; readonly pool: string; readonly site: string },
) {
  const fill = (value: unknown): unknown => {
    if (typeof value === "string")
      return value.replaceAll("$(relevo.instance)", instance).replaceAll("$(relevo.pool)", pool).replaceAll("$(relevo.site)", site);
    if (Array.isArray(value)) return value.map(fill);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item)]));
  };
  return objects.map((object) => fill(object) as Readonly<Record<string, unknown>>);
}

interface PodOfRole {
  readonly role: TrinoRole;
  readonly pod: KubePod;
}

async function podsOf({ podLabels }: Source, namespace: string, kube: Pick<KubeApi, "list">): Promise<readonly PodOfRole[]> {
  const found: PodOfRole[] = [];
  for (const [role, labels] of podLabels) {
    const labelSelector = Object.entries(labels)
      .map(([name, value]) => `${name}=${value}`)
      .join(",");
    const { items } = await kube.list(PODS, { namespace, labelSelector });
    for (const item of items) {
      const parsed = parsePod(item);
      if (parsed.ok && parsed.value.metadata.deletionTimestamp === null) found.push({ role, pod: parsed.value });
    }
  }
  return found.toSorted((a, b) => (a.pod.metadata.name < b.pod.metadata.name ? -1 : 1));
}

function hostOf({ status: { podIP } }: KubePod): string {
  return podIP?.includes(":") ? `[${podIP}]` : (podIP ?? "");
}

/** What was seen of one pod, each thing once. */
interface Look {
  readonly pod: string | null;
  readonly inside: PodInside | null;
  /** Why there is no inside. */
  readonly blind: string;
  readonly startedAt: Instant | null;
  readonly files: Map<string, Promise<PodFile | undefined>>;
  readonly manage: () => Promise<ProcessSays>;
}

const NO_POD: Look = {
  ...{ pod: null, inside: null, blind: "there is no pod", startedAt: null, files: new Map() },
  manage: async () => ({ says: "nothing", where: "there is no pod" }),
};

interface Door {
  readonly port: number;
  readonly user: string;
}

async function lookInto(pod: KubePod, { sight, probes }: EffectParts, { port, user }: Door): Promise<Look> {
  const { name, namespace, uid } = pod.metadata;
  const inside = await sight.look({ uid, name, namespace });
  const starts = pod.status.containerStatuses.flatMap(({ state }) => state.running?.startedAt ?? []);
  let managed: Promise<ProcessSays> | undefined;
  return {
    pod: name,
    inside,
    blind: sight.blind,
    startedAt: inside?.startedAt ?? (starts.length === 0 ? null : Math.min(...starts)),
    files: new Map(),
    manage: () => (managed ??= mayManage(probes(`http://${hostOf(pod)}:${port}`, user), name, user)),
  };
}

async function mayManage(probe: ServerProbe, pod: string, user: string): Promise<ProcessSays> {
  try {
    return (await probe.mayManage())
      ? { says: "happened", where: `a call that needs it was allowed to ${user} at ${pod}` }
      : { says: "not", where: `a call that needs it was denied to ${user} at ${pod}` };
  } catch (error) {
    return nothing(error);
  } finally {
    await probe.close();
  }
}

function nothing(error: unknown): ProcessSays {
  if (!(error instanceof RelevoError)) throw error;
  return { says: "nothing", where: `${error.message}${error.found === undefined ? "" : ` (${String(error.found)})`}` };
}

/** One cluster's coordinator; each question is asked once, when somebody wants its answer. */
class Engine {
  readonly #probe: ServerProbe;
  #session: Promise<ReadonlyMap<string, SessionProperty>> | undefined;
  #policy: Promise<ProcessSays> | undefined;
  readonly #exchanges = new Map<string, Promise<ProcessSays>>();

  constructor(probe: ServerProbe) {
    this.#probe = probe;
  }

  async session(name: string, which: keyof SessionProperty): Promise<ProcessSays> {
    try {
      const property = (await (this.#session ??= this.#probe.session())).get(name);
      const where = `SHOW SESSION, ${name}`;
      return property === undefined ? { says: "absent", where } : { says: "value", value: property[which], where };
    } catch (error) {
      return nothing(error);
    }
  }

  retryPolicy(): Promise<ProcessSays> {
    return (this.#policy ??= this.#askPolicy());
  }

  exchange(location: string): Promise<ProcessSays> {
    const asked = this.#exchanges.get(location) ?? this.#probe.exchange(location).catch(nothing);
    this.#exchanges.set(location, asked);
    return asked;
  }

  close(): Promise<void> {
    return this.#probe.close();
  }

  async #askPolicy(): Promise<ProcessSays> {
    try {
      const value = await this.#probe.retryPolicy();
      const where = "as the engine took it for a query of ours";
      return value === null ? { says: "nothing", where: "the engine does not tell its policy" } : { says: "value", value, where };
    } catch (error) {
      return nothing(error);
    }
  }
}

interface RowParts {
  readonly instance: EffectInstance;
  readonly isMadeBefore: boolean;
  readonly source: Source;
  readonly setting: Setting;
  readonly look: Look;
  readonly engine: Engine | undefined;
  readonly all: readonly Setting[];
}

async function rowOf(parts: RowParts): Promise<EffectRow> {
  const { instance, isMadeBefore, source, setting, look } = parts;
  const { kind, role, file, name } = setting;
  const rendered = source.rendered.find((each) => idOf(each) === idOf(setting));
  const { delivered, changedAt } = await deliveredOf(setting, rendered, look);
  const process = await processSays(parts);
  const evidence = {
    kind,
    declared: setting.value,
    owner: source.owner,
    isMadeBefore,
    rendered: renderedSeen(rendered, source),
    delivered,
    changedAt,
  };
  const { state, message, todo } = judge({ ...evidence, startedAt: look.startedAt, process });
  const hop = (which: HopSeen["hop"], seen: Seen): HopSeen => ({
    ...{ hop: which, where: seen.where },
    value: seen.seen === "value" ? shownValue(setting, seen.value) : null,
  });
  const effective: HopSeen = {
    ...{ hop: "effective", where: process.where },
    value: process.says === "value" ? shownValue(setting, process.value) : null,
  };
  const declared: HopSeen = { hop: "declared", value: shownValue(setting, setting.value), where: source.declaredIn };
  const hops = [declared, hop("rendered", evidence.rendered), hop("delivered", delivered), effective];
  return { instance: instance.id, pod: look.pod, kind, role, file, name, hops, state, message: hidden(setting, message), todo };
}

/** A secret must not come to light in a sentence. */
function hidden(setting: Setting, message: string): string {
  return shownValue(setting, "") === "" ? message : "its value is not shown";
}

function renderedSeen(rendered: Rendered | undefined, { rendered: all, declaredIn }: Source): Seen {
  if (rendered !== undefined) return { seen: "value", value: rendered.value, where: `ConfigMap ${rendered.configMap}` };
  const maps = [...new Set(all.map(({ configMap }) => configMap))].toSorted();
  return { seen: "absent", where: maps.length === 0 ? `what was made of ${declaredIn}` : `ConfigMap ${maps.join(", ")}` };
}

async function deliveredOf(
  setting: Setting,
  rendered: Rendered | undefined,
  look: Look,
): Promise<{ delivered: Seen; changedAt: Instant | null }> {
  const { inside, blind, pod, files } = look;
  const known = rendered?.changedAt ?? null;
  if (pod === null) return { delivered: { seen: "absent", where: blind }, changedAt: known };
  if (inside === null) return { delivered: { seen: "unread", where: blind }, changedAt: known };
  const reading = files.get(setting.file) ?? inside.readFile(setting.file);
  files.set(setting.file, reading);
  const found = await reading;
  if (found === undefined) return { delivered: { seen: "absent", where: `${pod} has no ${setting.file}` }, changedAt: known };
  const value = settingsOf(setting.role, setting.file, found.text).find((each) => idOf(each) === idOf(setting))?.value;
  const where = found.where;
  return {
    delivered: value === undefined ? { seen: "absent", where, hasFile: true } : { seen: "value", value, where },
    changedAt: found.changedAt,
  };
}

async function processSays({ setting, look, engine, all }: RowParts): Promise<ProcessSays> {
  const { kind, role, name } = setting;
  if (kind === "jvm") return optionIn(look, setting);
  if (kind === "access") return await look.manage();
  if (engine === undefined) return { says: "nothing", where: "no coordinator answers" };
  if (kind === "session") return await engine.session(name, "value");
  if (kind === "exchange") {
    const location = all
      .find((each) => each.kind === "exchange" && each.name === BASE_DIRECTORIES)
      ?.value.split(",")[0]
      ?.trim();
    return location === undefined ? { says: "nothing", where: `${BASE_DIRECTORIES} is not declared` } : await engine.exchange(location);
  }
  if (role === "worker") return { says: "nothing", where: "a worker does not tell such keys" };
  if (name === RETRY_POLICY) return await engine.retryPolicy();
  const says = setting.file === "config.properties" ? await engine.session(name.replaceAll(/[.-]/g, "_"), "byDefault") : undefined;
  return says?.says === "value" ? says : { says: "nothing", where: "a coordinator does not tell such keys" };
}

function optionIn({ inside, blind }: Look, { name }: Setting): ProcessSays {
  if (inside === null) return { says: "nothing", where: blind };
  if (inside.commandLine === null) return { says: "nothing", where: "the server's process was not found" };
  const where = "the process's own command line";
  // Of an option that is given several times the last one counts.
  const found = inside.commandLine.findLast((word) => word.startsWith("-") && nameOfOption(word) === name);
  return found === undefined ? { says: "absent", where } : { says: "value", value: found, where };
}
