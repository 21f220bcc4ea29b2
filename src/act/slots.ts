/** How many steps of one pool act at once: held during an attempt only, never during a back-off, so a stuck step takes no place from the others (I15). */
export class Slots {
  readonly #limit: number;
  readonly #waiting: (() => void)[] = [];
  #taken = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  async run<T>(act: () => Promise<T>): Promise<T> {
    if (this.#taken < this.#limit) this.#taken++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve)); // the place is handed over, not freed
    try {
      return await act();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#taken--;
      else next();
    }
  }
}
