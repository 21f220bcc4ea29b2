/** The sources of notices that are taken: a new one is a folder, and its line here. */
import type { NoticeSource } from "./source.ts";

export const NOTICE_SOURCES: readonly NoticeSource[] = [];

export function findSource(name: string): NoticeSource | undefined {
  return NOTICE_SOURCES.find((source) => source.name === name);
}
