/** Maximum flow in a network with whole capacities: Dinic's algorithm, whose flow is whole too. */

export class FlowNetwork {
  readonly #to: number[] = [];
  readonly #left: number[] = [];
  readonly #edges: number[][] = [];

  node(): number {
    this.#edges.push([]);
    return this.#edges.length - 1;
  }

  edge(from: number, to: number, capacity: number): void {
    if (capacity <= 0) return;
    this.#edges[from]?.push(this.#half(to, capacity));
    this.#edges[to]?.push(this.#half(from, 0));
  }

  /** Uses the network up: what is left of its capacities is what is left after the flow. */
  maxFlow(source: number, sink: number): number {
    let total = 0;
    for (let levels = this.#levels(source, sink); levels; levels = this.#levels(source, sink)) {
      const next = this.#edges.map(() => 0);
      for (let pushed = this.#push(source, sink, levels, next); pushed > 0; pushed = this.#push(source, sink, levels, next))
        total += pushed;
    }
    return total;
  }

  /** An edge and its way back are neighbours: `index ^ 1` is the other. */
  #half(to: number, capacity: number): number {
    this.#to.push(to);
    this.#left.push(capacity);
    return this.#to.length - 1;
  }

  #levels(source: number, sink: number): readonly number[] | undefined {
    const levels = this.#edges.map(() => -1);
    levels[source] = 0;
    const queue = [source];
    for (let head = 0; head < queue.length; head += 1) {
      const from = queue[head] ?? source;
      for (const edge of this.#edges[from] ?? []) {
        const to = this.#to[edge] ?? source;
        if ((this.#left[edge] ?? 0) <= 0 || levels[to] !== -1) continue;
        levels[to] = (levels[from] ?? 0) + 1;
        queue.push(to);
      }
    }
    return (levels[sink] ?? -1) >= 0 ? levels : undefined;
  }

  /** One way from source to sink along rising levels, without recursion: chains are long. `next` is where each node goes on. */
  #push(source: number, sink: number, levels: readonly number[], next: number[]): number {
    const path: number[] = [];
    let at = source;
    while (at !== sink) {
      const edge = this.#edges[at]?.[next[at] ?? 0];
      if (edge === undefined) {
        const last = path.pop();
        if (last === undefined) return 0;
        at = this.#to[last ^ 1] ?? source;
        next[at] = (next[at] ?? 0) + 1;
      } else if ((this.#left[edge] ?? 0) > 0 && levels[this.#to[edge] ?? source] === (levels[at] ?? 0) + 1) {
        path.push(edge);
        at = this.#to[edge] ?? source;
      } else {
        next[at] = (next[at] ?? 0) + 1;
      }
    }
    const amount = Math.min(...path.map((edge) => this.#left[edge] ?? 0));
    for (const edge of path) {
      this.#left[edge] = (this.#left[edge] ?? 0) - amount;
      this.#left[edge ^ 1] = (this.#left[edge ^ 1] ?? 0) + amount;
    }
    return amount;
  }
}
