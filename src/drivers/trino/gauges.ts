/** Numbers that the engine shows under `/metrics`, in Prometheus's text format. */

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{[^}]*\})?[ \t]+(\S+)/;

/** Of these names alone; what is no number is left out. */
export function parseGauges(text: string, names: readonly string[]): ReadonlyMap<string, number> {
  const wanted = new Set(names);
  const found = new Map<string, number>();
  for (const line of text.split("\n")) {
    const [, name, value] = LINE.exec(line) ?? [];
    if (name === undefined || !wanted.has(name)) continue;
    const number = Number(value);
    if (Number.isFinite(number)) found.set(name, number);
  }
  return found;
}
