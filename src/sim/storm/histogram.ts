/** Latencies in steps of a tenth of a ms, and what is beyond the last step in one. */
const STEP_MS = 0.1;
const STEPS = 100_000;

export class Histogram {
  readonly #counts = new Uint32Array(STEPS + 1);
  #count = 0;
  #sumMs = 0;

  add(ms: number): void {
    const step = Math.min(STEPS, Math.floor(ms / STEP_MS));
    this.#counts[step] = (this.#counts[step] ?? 0) + 1;
    this.#count += 1;
    this.#sumMs += ms;
  }

  get count(): number {
    return this.#count;
  }

  /** 0 of none. */
  mean(): number {
    return this.#count === 0 ? 0 : this.#sumMs / this.#count;
  }

  /** The upper edge of the step in which it lies; 0 of none. */
  quantile(share: number): number {
    let left = Math.ceil(this.#count * share);
    for (let step = 0; step <= STEPS && left > 0; step++) {
      left -= this.#counts[step] ?? 0;
      if (left <= 0) return (step + 1) * STEP_MS;
    }
    return 0;
  }
}
