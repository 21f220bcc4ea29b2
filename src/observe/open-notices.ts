/** The notices that evidence may still come from, found by the machines and subjects that they name. */
import { subjectOf } from "../notices/notice.ts";
import type { NoticeRecord } from "../store/port.ts";

export class OpenNotices {
  readonly #byId = new Map<string, NoticeRecord>();
  /** By machine, subject and source's key: whatever may bind two notices together. */
  readonly #byTie = new Map<string, Set<string>>();

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): NoticeRecord | undefined {
    return this.#byId.get(id);
  }

  all(): IterableIterator<NoticeRecord> {
    return this.#byId.values();
  }

  /** Ties never change: a notice's machines and key are those of its first row. */
  put(notice: NoticeRecord): void {
    const isNew = !this.#byId.has(notice.id);
    this.#byId.set(notice.id, notice);
    if (isNew) for (const tie of tiesOf(notice)) this.#byTie.set(tie, (this.#byTie.get(tie) ?? new Set()).add(notice.id));
  }

  remove(id: string): void {
    const notice = this.#byId.get(id);
    if (notice === undefined) return;
    this.#byId.delete(id);
    for (const tie of tiesOf(notice)) {
      const ids = this.#byTie.get(tie);
      ids?.delete(id);
      if (ids?.size === 0) this.#byTie.delete(tie);
    }
  }

  /** All that name one of these machines. */
  ofMachines(machines: Iterable<string>): readonly NoticeRecord[] {
    return this.#tied([...machines].map(machineTie));
  }

  /** The notice and all that say something of the same machine or the same subject. */
  around(notice: NoticeRecord): readonly NoticeRecord[] {
    return this.#tied(tiesOf(notice));
  }

  #tied(ties: readonly string[]): readonly NoticeRecord[] {
    const ids = new Set(ties.flatMap((tie) => [...(this.#byTie.get(tie) ?? [])]));
    return [...ids].flatMap((id) => this.#byId.get(id) ?? []);
  }
}

const machineTie = (machine: string): string => `machine ${machine}`;

function tiesOf(notice: NoticeRecord): readonly string[] {
  const subject = subjectOf(notice);
  return [
    ...notice.machineIds.map(machineTie),
    `key ${notice.source} ${notice.dedupeKey}`,
    ...(subject === undefined ? [] : [`subject ${subject}`]),
  ];
}
