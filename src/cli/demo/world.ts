/** What the demo acts upon, in its words: the controller's API, the embedded cluster's admin interface, and the webhook as AWS would use it. */
import { z } from "zod";
import type { Clock } from "../../kernel/clock.ts";
import type { Ids } from "../../kernel/ids.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { spotInterruptionWarning } from "../../notices/eventbridge/compose.ts";
import { SIGNATURE_HEADER, signBody } from "../../server/access.ts";
import { evidenceView, instanceView, nodeView, poolView, stepView } from "../../server/views.ts";
import type { ControllerClient } from "../client.ts";

export type InstanceView = z.infer<typeof instanceView>;
export type NodeView = z.infer<typeof nodeView>;
export type EvidenceView = z.infer<typeof evidenceView>;
export type StepView = z.infer<typeof stepView>;

const POLL_MS = 100;
const MAX_RECORDS = 1_000;
const VICTIM_WITHIN_MS = 30_000;

const interruptionView = z.object({ instanceId: z.string(), region: z.string(), account: z.string(), time: z.string() });

export interface Victim {
  readonly node: NodeView;
  readonly instance: string;
}

export interface WorldOptions {
  readonly client: ControllerClient;
  readonly adminUrl: string;
  readonly webhookSecret: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly signal: AbortSignal;
}

export class DemoWorld {
  readonly #options: WorldOptions;

  constructor(options: WorldOptions) {
    this.#options = options;
  }

  instances(pool: string): Promise<readonly InstanceView[]> {
    return this.#options.client.list(`/v1/instances?pool=${encodeURIComponent(pool)}&limit=${MAX_RECORDS}`, instanceView);
  }

  evidence(pool: string): Promise<readonly EvidenceView[]> {
    return this.#options.client.list(`/v1/evidence?pool=${encodeURIComponent(pool)}&limit=${MAX_RECORDS}`, evidenceView);
  }

  steps(pool: string): Promise<readonly StepView[]> {
    return this.#options.client.list(`/v1/steps?pool=${encodeURIComponent(pool)}&limit=${MAX_RECORDS}`, stepView);
  }

  nodes(): Promise<readonly NodeView[]> {
    return this.#options.client.list("/v1/nodes", nodeView);
  }

  async serving(pool: string): Promise<number> {
    return (await this.#options.client.get(`/v1/pools/${pool}`, poolView)).serving;
  }

  /** A node that carries a serving instance of this pool, and best none of another; with the instance's id. Waits for one. */
  async victim(pool: string, spare: ReadonlySet<string> = new Set()): Promise<Victim> {
    let found: Victim | undefined;
    await this.until(`a node with a serving instance of ${pool}`, VICTIM_WITHIN_MS, async () => {
      found = await this.#findVictim(pool, spare);
      return found !== undefined;
    });
    return found as Victim;
  }

  async #findVictim(pool: string, spare: ReadonlySet<string>): Promise<Victim | undefined> {
    const serving = new Set((await this.instances(pool)).filter(({ phase }) => phase === "serving").map(({ id }) => id));
    const nodes = (await this.nodes()).filter(
      (node) => node.ready && !node.unschedulable && !spare.has(node.name) && node.instances.some((id) => serving.has(id)),
    );
    const node = nodes.toSorted((a, b) => a.instances.length - b.instances.length || (a.name < b.name ? -1 : 1))[0];
    const instance = node?.instances.find((id) => serving.has(id));
    return node && instance !== undefined ? { node, instance } : undefined;
  }

  drift(node: string): Promise<unknown> {
    return this.#admin(node, "drift", {});
  }

  kill(node: string): Promise<unknown> {
    return this.#admin(node, "kill", {});
  }

  /** The cloud takes the machine after `deadlineMs`, and says so by an EventBridge event, as AWS sends it. */
  async interrupt(node: string, deadlineMs: number): Promise<void> {
    const { instanceId, region, account, time } = interruptionView.parse(await this.#admin(node, "interrupt", { deadlineMs }));
    const { client, webhookSecret, ids } = this.#options;
    const body = spotInterruptionWarning({ id: ids.next("event"), at: Date.parse(time), machineId: instanceId, region, account });
    const response = await fetch(`${client.url}/v1/notices/eventbridge`, {
      method: "POST",
      headers: { "content-type": "application/json", [SIGNATURE_HEADER]: signBody(body, webhookSecret) },
      body,
    });
    if (!response.ok)
      throw new RelevoError("demo_notice_refused", "the webhook did not take the notice", {
        found: `${response.status} ${await response.text()}`,
      });
  }

  /** What runs already runs on. */
  async limitSpot(machines: number | null): Promise<void> {
    await this.#post("/embedded/v1/offerings/limit", { capacityType: "spot", machines }, "the embedded cluster did not limit its capacity");
  }

  /** Polls until it holds; throws after `limitMs`, naming what was awaited. */
  async until(what: string, limitMs: number, holds: () => Promise<boolean>): Promise<void> {
    const { clock, signal } = this.#options;
    const end = clock.monotonic() + limitMs;
    for (;;) {
      // The controller may be down for a moment: that is one of the acts.
      if (await holds().catch(() => false)) return;
      if (clock.monotonic() > end) throw new RelevoError("demo_timeout", `${what} did not happen within ${limitMs / 1000} s`);
      await clock.sleep(POLL_MS, signal);
    }
  }

  #admin(node: string, verb: string, body: unknown): Promise<unknown> {
    return this.#post(`/embedded/v1/nodes/${encodeURIComponent(node)}/${verb}`, body, `the embedded cluster did not ${verb} ${node}`);
  }

  async #post(path: string, body: unknown, failure: string): Promise<unknown> {
    const response = await fetch(`${this.#options.adminUrl}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!response.ok)
      throw new RelevoError("demo_admin_refused", failure, {
        found: `${response.status} ${await response.text()}`,
      });
    return response.json();
  }
}
