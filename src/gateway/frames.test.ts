import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { closeFrame, FrameTracker } from "./frames.ts";

function frame(opcode: number, payload: Buffer, mask?: Buffer): Buffer {
  const { length } = payload;
  const bit = mask === undefined ? 0 : 0x80;
  const head = [0x80 | opcode];
  if (length < 126) head.push(bit | length);
  else if (length < 65_536) head.push(bit | 126, length >> 8, length & 0xff);
  else head.push(bit | 127, 0, 0, 0, 0, (length >>> 24) & 0xff, (length >>> 16) & 0xff, (length >>> 8) & 0xff, length & 0xff);
  const body = mask === undefined ? payload : payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0));
  return Buffer.concat([Buffer.from(head), mask ?? Buffer.alloc(0), body]);
}

const aFrame = fc
  .record({
    opcode: fc.constantFrom(0, 1, 2, 9, 10),
    length: fc.oneof(fc.nat(300), fc.constantFrom(125, 126, 65_535, 65_536, 70_000)),
    mask: fc.option(fc.uint8Array({ minLength: 4, maxLength: 4 }), { nil: undefined }),
  })
  .map(({ opcode, length, mask }) => frame(opcode, Buffer.alloc(length, 0x5a), mask === undefined ? undefined : Buffer.from(mask)));

describe("however the network cuts the bytes", () => {
  test("a boundary is where a frame ends, and nowhere else", () => {
    fc.assert(
      fc.property(
        fc.array(aFrame, { minLength: 1, maxLength: 5 }),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 8 }),
        (frames, cuts) => {
          const bytes = Buffer.concat(frames);
          const ends = new Set(frames.map((_, index) => Buffer.concat(frames.slice(0, index + 1)).length)).add(0);
          const at = [...new Set([...cuts.map((cut) => Math.floor(cut * bytes.length)), bytes.length])].toSorted((a, b) => a - b);
          const tracker = new FrameTracker();
          let from = 0;
          for (const to of at) {
            tracker.advance(bytes.subarray(from, to));
            expect(tracker.atBoundary).toBe(ends.has(to));
            from = to;
          }
          expect(tracker.closeCode).toBe(null);
        },
      ),
    );
  });

  test("it stops at the first boundary when asked to", () => {
    const [one, two] = [frame(1, Buffer.alloc(10)), frame(1, Buffer.alloc(20))];
    const tracker = new FrameTracker();
    tracker.advance(one.subarray(0, 5));
    expect(tracker.advance(Buffer.concat([one.subarray(5), two]), true)).toBe(one.length - 5);
    expect(tracker.advance(two, true)).toBe(0);
  });

  test("a close frame's code is read, masked or not, in one piece or bytewise", () => {
    const mask = Buffer.from([1, 2, 3, 4]);
    for (const [bytes, code] of [
      [closeFrame(1012, "service restart"), 1012],
      [frame(8, Buffer.from([0x03, 0xe8]), mask), 1000],
      [frame(8, Buffer.alloc(0)), 1005],
    ] as const) {
      const whole = new FrameTracker();
      whole.advance(bytes);
      const bytewise = new FrameTracker();
      for (const byte of bytes) bytewise.advance(Buffer.from([byte]));
      expect([whole.closeCode, bytewise.closeCode]).toEqual([code, code]);
    }
  });
});
