/** What the parsers of the agent's sources are tested with: samples in files, what they mean, and the same fuzz for all. */
import { readdirSync, readFileSync } from "node:fs";
import * as fc from "fast-check";
import { expect } from "vitest";
import type { Instant } from "../../kernel/clock.ts";
import { type Notice, NoticeError, noticeOf } from "../notice.ts";
import type { NoticeSource, ParseContext } from "../source.ts";
import { aBody } from "./fuzz.ts";

export const RECEIVED_AT: Instant = Date.parse("2026-11-30T10:00:01.500Z");

export interface Samples {
  readonly names: readonly string[];
  readonly text: (name: string) => string;
  readonly changed: (name: string, change: Readonly<Record<string, unknown>>) => string;
}

export function samplesIn(folder: URL): Samples {
  const text = (name: string): string => readFileSync(new URL(`${name}.json`, folder), "utf8");
  return {
    names: readdirSync(folder)
      .map((file) => file.replace(/\.json$/, ""))
      .toSorted(),
    text,
    changed: (name, change) => JSON.stringify({ ...(JSON.parse(text(name)) as object), ...change }),
  };
}

export function noticeFrom(source: NoticeSource, body: string, context: Partial<ParseContext> = {}): Notice {
  const [announcement] = source.parse({ body, headers: {} }, { receivedAt: RECEIVED_AT, ...context });
  if (announcement === undefined) throw new Error("nothing was announced");
  return noticeOf(announcement, { id: "notice-1", source: source.name, receivedAt: RECEIVED_AT, body });
}

/** Reason and deadline on one line. */
export function meaningOf(source: NoticeSource, body: string, context: Partial<ParseContext> = {}): string {
  const { reason, deadline } = noticeFrom(source, body, context);
  return [String(reason), ...(deadline === null ? [] : [new Date(deadline).toISOString().slice(0, 19)])].join(" ");
}

export function fuzzAgentSource(source: NoticeSource, samples: Samples): void {
  fc.assert(
    fc.property(aBody(samples.names.map(samples.text)), (body) => {
      try {
        const notice = noticeFrom(source, body);
        expect(notice.machineIds).toHaveLength(1);
        expect(notice.deadline === null || Number.isFinite(notice.deadline)).toBe(true);
        expect(noticeFrom(source, body)).toEqual(notice);
      } catch (error) {
        if (!(error instanceof NoticeError)) throw error;
        expect(["notice_malformed", "notice_too_large"]).toContain(error.code);
      }
    }),
    { numRuns: 1_000 },
  );
}
