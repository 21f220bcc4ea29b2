/** Where capacity is, and where a replacement shall rather go. */
import { z } from "zod";

/** One kind of machine at one place: what lives and dies together. */
export interface Spot {
  readonly site: string;
  /** Empty when nobody says. */
  readonly zone: string;
  readonly instanceType: string;
  /** `spot`, `on-demand`, `reserved`; empty when nobody says. */
  readonly capacityType: string;
}

/** `site/zone/type/capacity-type`. */
export function spotId({ site, zone, instanceType, capacityType }: Spot): string {
  return [site, zone, instanceType, capacityType].map((part) => part || "-").join("/");
}

export const placementSchema = z.strictObject({
  avoid: z.strictObject({
    zones: z.array(z.string()),
    instanceTypes: z.array(z.string()),
    /** By name: those that are announced to be taken, whether or not anybody has cordoned them yet. */
    nodes: z.array(z.string()),
  }),
  /** `on-demand` while spot capacity is dying. */
  capacityType: z.enum(["on-demand"]).nullable(),
});
/** Rendered as node affinity. */
export type Placement = z.output<typeof placementSchema>;

export const ANYWHERE: Placement = { avoid: { zones: [], instanceTypes: [], nodes: [] }, capacityType: null };

export function isAnywhere({ avoid, capacityType }: Placement): boolean {
  return avoid.zones.length === 0 && avoid.instanceTypes.length === 0 && avoid.nodes.length === 0 && capacityType === null;
}
