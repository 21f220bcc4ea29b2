/** What the scheduler compares: what a pod asks of labels, and what it puts up with. One meaning for the embedded cluster and for whoever looks at a real one. */

export interface SelectorRequirement {
  readonly key: string;
  /** `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Lt`; a server takes no other. */
  readonly operator: string;
  readonly values?: readonly string[];
}

export interface Toleration {
  readonly key?: string | undefined;
  readonly operator?: string | undefined;
  readonly value?: string | undefined;
  readonly effect?: string | undefined;
}

export function matchesRequirement(requirement: SelectorRequirement, labels: Readonly<Record<string, string>> | undefined): boolean {
  return isMetBy(requirement, labels?.[requirement.key]);
}

/** By the value of its key; undefined: it is not there. An operator that is not known here refuses nothing. */
export function isMetBy({ operator, values = [] }: SelectorRequirement, value: string | undefined): boolean {
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
      return value !== undefined && Number(value) > Number(values[0]);
    case "Lt":
      return value !== undefined && Number(value) < Number(values[0]);
    default:
      return true;
  }
}

/** Without an effect it is of every one; without a key, and with `Exists`, of every taint. */
export function tolerates(
  toleration: Toleration,
  taint: { readonly key: string; readonly value?: string | undefined; readonly effect: string },
): boolean {
  if ((toleration.effect ?? "") !== "" && toleration.effect !== taint.effect) return false;
  if ((toleration.key ?? "") === "") return toleration.operator === "Exists";
  if (toleration.key !== taint.key) return false;
  return toleration.operator === "Exists" || (toleration.value ?? "") === (taint.value ?? "");
}
