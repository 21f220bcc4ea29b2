/** Where the embedded cluster's API differs from a real one on purpose, and why. Each must still be true: one that no answer shows fails the test. */

export interface Deviation {
  /** Of the answers that differ: `configmaps: a life #4`. */
  readonly at: RegExp;
  readonly reason: string;
}

export const DEVIATIONS: readonly Deviation[] = [
  {
    at: /^persistentvolumeclaims: /,
    reason: "claims carry no `kubernetes.io/pvc-protection`: there are no volumes to be protected, and their table has fewer columns",
  },
  {
    at: /^(pods: a (life|watch with a selector) #(2[01]|6|7|8|12)|a pod's grace #[489]|binding a pod #10|evictions #19)$/,
    reason: "a pod that goes at once is deleted in one step: no event with a deletionTimestamp (or, evicted, with a condition) comes first",
  },
  {
    at: /^(pods|events|daemonsets|nodes|priorityclasses|nodeclaims|nodepools): a life #(9|11)$/,
    reason:
      "tables have the columns that a user of this cluster needs: a node's zone and provider id instead of its kernel, no readiness gates",
  },
  {
    at: /^(pools|nodeclaims|nodepools): what is refused #[12]$/,
    reason: "a custom resource with bad metadata has one cause; a real server adds one for the rules that it did not get to",
  },
  {
    at: /^(pools|nodeclaims|nodepools): what is refused #8$/,
    reason: "a PUT on a collection of custom resources is 405, as for any other kind, instead of 400",
  },
  { at: /^a node's taints by a strategic patch, and a cordon #4$/, reason: "an empty list in a spec stays instead of being left out" },
  {
    at: /^a namespace that goes #4$/,
    reason: "a namespace's objects are deleted with it at once; in a real cluster a controller does it later",
  },
  { at: /^statuses of built-in kinds #8$/, reason: "an empty `status` is left out instead of `{}`" },
  {
    at: /^ways to patch #8$/,
    reason: "a patch with a value of a wrong type is told with its field instead of as `patch`: there is no decoding step",
  },
  {
    at: /^names that the server makes, and namespaces that are not there #11$/,
    reason: "a create with a resourceVersion is 400 instead of 500",
  },
  { at: /^pages #14$/, reason: "a list at an exact older version is 410: only the current state and begun pages are kept" },
  { at: /^watches by version #6$/, reason: "a watch from a version that is no number is 400 instead of 500" },
  {
    at: /^watches by version #7$/,
    reason: "a watch that ends by its timeout is always told a bookmark before; a real server leaves it out in the first second",
  },
  { at: /^custom resources #3$/, reason: "a definition is established in its creation; a real server writes its status later" },
  { at: /^custom resources #20$/, reason: "a definition goes at once with its objects; a real server holds it by a finalizer meanwhile" },
  { at: /^pods that are not valid #8$/, reason: "a pod without a PriorityClass has no `spec.priority` instead of 0" },
];
