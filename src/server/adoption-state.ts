/** What the API asks and answers of a target that a Pool takes over (K3). */
import type { Instant } from "../kernel/clock.ts";
import type { ScaleOwner } from "../model/scale-owner.ts";

export interface AdoptCommand {
  /** `namespace/name`. */
  readonly pool: string;
  readonly by: string;
  /** The owner that is to go, by its kind, name and UID; null: none is removed. */
  readonly removeOwner: { readonly kind: string; readonly name: string; readonly uid: string } | null;
  /** Field managers that own the count and will leave it alone from now on, as the caller says. */
  readonly acceptManagers: readonly string[];
  /** Says what would be done, and refuses what would be refused. */
  readonly dryRun: boolean;
}

export interface AdoptionResult {
  readonly pool: string;
  /** `Deployment/web`. */
  readonly target: string;
  readonly uid: string;
  readonly replicas: number;
  readonly outcome: "adopted" | "already_adopted" | "would_adopt" | "released";
  readonly at: Instant;
  /** `HorizontalPodAutoscaler/web`; null: nobody had to be removed. */
  readonly removed: string | null;
  /** Of fresh reads after it: nobody, or who came back at once. */
  readonly owners: readonly ScaleOwner[];
  /** The count was changed while its owner went, from this; null: it was not. It is put back. */
  readonly resetTo: number | null;
}
