/** A bounded queue between a watch, which pushes, and a consumer, which pulls. */

export class EventQueue<T> implements AsyncIterable<T> {
  readonly #limit: number;
  #items: T[] = [];
  #head = 0;
  #wake: (() => void) | undefined;
  #ended = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isEnded(): boolean {
    return this.#ended;
  }

  /** False when the queue is full or ended: the consumer is too slow and has to begin anew. */
  push(item: T): boolean {
    if (this.#ended || this.#items.length - this.#head >= this.#limit) return false;
    this.#items.push(item);
    this.#wake?.();
    return true;
  }

  /** What is in the queue is still delivered. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (;;) {
      while (this.#head < this.#items.length) {
        const item = this.#items[this.#head] as T;
        this.#head += 1;
        if (this.#head === this.#items.length) {
          this.#items = [];
          this.#head = 0;
        }
        yield item;
      }
      if (this.#ended) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
  }
}
