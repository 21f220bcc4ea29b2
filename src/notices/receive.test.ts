import { expect, test } from "vitest";
import { eventBridgeSource } from "./eventbridge/parse.ts";
import { spotInterruptionWarning, stateChange } from "./eventbridge/compose.ts";
import { type Received, type ReceiverOptions, receiveNotice } from "./receive.ts";
import type { NoticeRecord } from "../store/port.ts";

const NOW = Date.UTC(2030, 0, 1);

function receiver(): ReceiverOptions & { readonly saved: NoticeRecord[] } {
  const saved: NoticeRecord[] = [];
  let ids = 0;
  return {
    saved,
    clock: { now: () => NOW },
    ids: { next: (prefix) => `${prefix}-${++ids}` },
    store: {
      saveNotice: async (notice) => {
        if (saved.some((each) => each.source === notice.source && each.dedupeKey === notice.dedupeKey)) return false;
        saved.push(notice);
        return true;
      },
    },
  };
}

const receive = async (body: string, options: ReceiverOptions): Promise<readonly Received["outcome"][]> =>
  (await receiveNotice(eventBridgeSource, { body, headers: {} }, options)).map(({ outcome }) => outcome);

const EVENT = { id: "event-1", at: NOW, machineId: "i-0123456" };

test("a notice is written down before it is acknowledged; the same one again changes nothing", async () => {
  const options = receiver();
  expect([await receive(spotInterruptionWarning(EVENT), options), await receive(spotInterruptionWarning(EVENT), options)]).toEqual([
    ["received"],
    ["duplicate"],
  ]);
  expect(options.saved.map(({ id, outcome, deadline }) => ({ id, outcome, deadline }))).toEqual([
    { id: "notice-1", outcome: "received", deadline: NOW + 120_000 },
  ]);
});

test("a notice that nothing goes by is kept as ignored", async () => {
  const options = receiver();
  expect(await receive(stateChange(EVENT, "running"), options)).toEqual(["ignored"]);
  expect(options.saved.map(({ outcome }) => outcome)).toEqual(["ignored"]);
});

test("what cannot be understood changes nothing", async () => {
  const options = receiver();
  await expect(receive("{}", options)).rejects.toMatchObject({ code: "notice_malformed", path: "id" });
  expect(options.saved).toEqual([]);
});

test("a notice of a kind that is not known is kept and says so", async () => {
  const options = receiver();
  expect(await receive(stateChange(EVENT, ""), options)).toEqual(["unknown_kind"]);
  expect(options.saved.map(({ outcome, reason }) => ({ outcome, reason }))).toEqual([{ outcome: "unknown_kind", reason: "unknown_kind" }]);
});

test("a parser that fails in a way that nobody thought of has refused the message: it is not tried for ever", async () => {
  const options = receiver();
  const source = {
    ...eventBridgeSource,
    parse: () => {
      throw new RangeError("too deep");
    },
  };
  await expect(receiveNotice(source, { body: "{}", headers: {} }, options)).rejects.toMatchObject({
    name: "NoticeError",
    code: "notice_malformed",
    message: "the message cannot be understood: too deep",
  });
  expect(options.saved).toEqual([]);
});
