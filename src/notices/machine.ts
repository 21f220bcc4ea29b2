/**
 * What a machine is known by, so that a notice and a node mean the same one: never by a name of the node.
 *
 * AWS: the instance id (`i-…`), which is unique everywhere. Everywhere else: the whole providerID, because a name is unique only within its project and zone
 * or its resource group. Azure's in lower case: its parts are written in either case by different services.
 */

/** A providerID is at most this long (Azure's scale sets are the longest, about 300). */
const MAX_LENGTH = 1024;
/** No cloud has them in its ids, and what a sender names is shown on terminals. */
const UNPRINTABLE = /[\s\p{C}]/u;

/** `aws:///ZONE/i-…` → `i-…`; `gce://…`, `kwok://…` as they are; `azure:///…` in lower case. Undefined for what names no machine. */
export function machineIdOf(providerID: string): string | undefined {
  if (providerID.length > MAX_LENGTH || UNPRINTABLE.test(providerID)) return undefined;
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//.exec(providerID)?.[1];
  switch (scheme) {
    case undefined:
      return undefined;
    case "aws":
      return /^aws:\/\/\/[^/]+\/(i-[0-9A-Za-z-]{1,64})$/.exec(providerID)?.[1];
    case "gce":
      return /^gce:\/\/[^/]+\/[^/]+\/[^/]+$/.test(providerID) ? providerID : undefined;
    case "azure":
      return /^azure:\/\/\/subscriptions\/[^/]+\/resourcegroups\/.+\/virtualmachines\/[^/]+$/i.test(providerID)
        ? providerID.toLowerCase()
        : undefined;
    default:
      return /[^/]$/.test(providerID) ? providerID : undefined;
  }
}

/** What a sender calls a machine: a providerID, or an id that is unique by itself, such as an EC2 instance id. */
export function machineIdFrom(text: string): string | undefined {
  if (text.includes("://")) return machineIdOf(text);
  return /^i-[0-9A-Za-z-]{1,64}$/.test(text) ? text : undefined;
}
