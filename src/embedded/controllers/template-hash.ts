/** A short, stable name for a pod template: FNV-1a over its canonical JSON, in the letters that Kubernetes uses for generated names. */
const LETTERS = "bcdfghjklmnpqrstvwxz2456789";

export function templateHash(template: unknown): string {
  let hash = numericHash(template);
  let name = "";
  for (let i = 0; i < 10; i++) {
    name += LETTERS[Number(hash % 27n)];
    hash /= 27n;
  }
  return name;
}

/** Objects in the store never change, and each controller asks for the hash of the same template at every look. */
const known = new WeakMap<object, bigint>();

/** 64 bits. */
export function numericHash(value: unknown): bigint {
  if (typeof value !== "object" || value === null || !Object.isFrozen(value)) return hashOf(value);
  const hash = known.get(value) ?? hashOf(value);
  known.set(value, hash);
  return hash;
}

function hashOf(value: unknown): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(canonicalJson(value))) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash;
}

/** JSON with sorted keys, so that equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    inner !== null && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : inner,
  );
}
