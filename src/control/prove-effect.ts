/** What is asked for when the configuration of a pool's instances is to be proven by its effect. */
import type { EffectReport } from "../model/effect.ts";
import type { PoolDocument } from "../model/pool.ts";

export interface EffectSubject {
  readonly document: PoolDocument;
  readonly blueprintHash: string;
  readonly instances: readonly { readonly id: string; readonly blueprintHash: string; readonly site: string }[];
}

export type ProveEffect = (subject: EffectSubject) => Promise<EffectReport>;
