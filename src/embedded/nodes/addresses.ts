/**
 * Addresses of pods: each has one of its own in 127.64.0.0/10, 256 for each node. Clusters on one machine begin at different places, so that they seldom
 * meet; an address is not used again before the others of its node were.
 */
import { integerBetween, type Random } from "../../kernel/random.ts";
import { RelevoError } from "../../kernel/errors.ts";

const NODE_SLOTS = 1 << 14;
const FIRST_POD = 2;
const LAST_POD = 254;

export class NodeAddresses {
  readonly hostIP: string;
  readonly #prefix: string;
  readonly #taken = new Set<number>();
  #last = LAST_POD;

  constructor(slot: number) {
    this.#prefix = `127.${64 + (slot >> 8)}.${slot & 255}`;
    this.hostIP = `${this.#prefix}.1`;
  }

  allocate(): string {
    for (let tried = FIRST_POD; tried <= LAST_POD; tried++) {
      this.#last = this.#last >= LAST_POD ? FIRST_POD : this.#last + 1;
      if (this.#taken.has(this.#last)) continue;
      this.#taken.add(this.#last);
      return `${this.#prefix}.${this.#last}`;
    }
    throw new RelevoError("node_addresses_exhausted", "The node has no address left for another pod.", {
      found: this.#taken.size,
      allowed: `${LAST_POD - FIRST_POD + 1} pods`,
    });
  }

  release(address: string): void {
    this.#taken.delete(Number(address.slice(address.lastIndexOf(".") + 1)));
  }
}

export class AddressSpace {
  #next: number;

  constructor(random: Random) {
    this.#next = integerBetween(random, 0, NODE_SLOTS - 1);
  }

  node(): NodeAddresses {
    const slot = this.#next;
    this.#next = (slot + 1) % NODE_SLOTS;
    return new NodeAddresses(slot);
  }
}
