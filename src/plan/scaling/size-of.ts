import type { PoolSnapshot } from "../snapshot.ts";

/** How many instances a pool is to have as of now: what was decided last of it, else what its document says. Before the first decision also of a scaled pool. */
export function sizeOf({ spec, scale }: Pick<PoolSnapshot, "spec" | "scale">): number {
  return spec.scale === undefined ? spec.size.desired : (scale?.desired ?? spec.size.desired);
}
