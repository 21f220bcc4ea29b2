/** Semantic versions, as far as "older" needs them: a pre-release comes before its release. Negative: `one` is older. */
export function compareVersions(one: string, other: string): number {
  const [a, b] = [partsOf(one), partsOf(other)];
  for (const index of [0, 1, 2]) {
    const difference = (a.numbers[index] ?? 0) - (b.numbers[index] ?? 0);
    if (difference !== 0) return difference;
  }
  if (a.pre === b.pre) return 0;
  if (a.pre === "" || b.pre === "") return a.pre === "" ? 1 : -1;
  return a.pre < b.pre ? -1 : 1;
}

function partsOf(version: string): { readonly numbers: readonly number[]; readonly pre: string } {
  const [core = "", pre = ""] = version.split("+")[0]?.split(/-(.*)/s) ?? [];
  return { numbers: core.split(".").map((part) => Number(part) || 0), pre };
}
