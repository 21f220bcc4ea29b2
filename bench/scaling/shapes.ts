/** Twenty loads, in jobs per second over two hours: generated, the same for each seed. */
import type { Random } from "../../src/kernel/random.ts";

export const DURATION_S = 7_200;
const MINUTE = 60;

export interface Shape {
  readonly name: string;
  /** Jobs that arrive in each second, before chance: the mean of a Poisson count. */
  readonly rate: (second: number) => number;
  /** Jobs that arrive all at once in that second. */
  readonly batch?: (second: number) => number;
}

const LOW = 2;
const HIGH = 14;

export function shapesOf(random: Random): readonly Shape[] {
  return [
    { name: "constant", rate: () => 8 },
    { name: "step up", rate: (s) => (s < 30 * MINUTE ? LOW : HIGH) },
    { name: "step down", rate: (s) => (s < 60 * MINUTE ? HIGH : LOW) },
    { name: "staircase", rate: (s) => LOW + 2 * Math.min(6, Math.abs(Math.floor(s / (9 * MINUTE)) - 6)) },
    { name: "ramp up", rate: (s) => line(s, 20, 100, LOW, HIGH) },
    { name: "ramp down", rate: (s) => line(s, 20, 100, HIGH, LOW) },
    { name: "mountain", rate: (s) => (s < 60 * MINUTE ? line(s, 10, 55, LOW, HIGH) : line(s, 65, 110, HIGH, LOW)) },
    { name: "one spike", rate: (s) => (within(s, 60 * MINUTE, 3 * MINUTE) ? 20 : 3) },
    { name: "spikes", rate: (s) => (s % (12 * MINUTE) < 90 ? 16 : 3) },
    { name: "random bursts", rate: bursts(random) },
    { name: "flash crowd", rate: (s) => 2 + (s < 40 * MINUTE ? 0 : 16 * Math.exp(-(s - 40 * MINUTE) / (15 * MINUTE))) },
    { name: "day", rate: (s) => 8 - 6 * Math.cos((2 * Math.PI * s) / DURATION_S) },
    { name: "noisy day", rate: noisy(random, (s) => 8 - 6 * Math.cos((2 * Math.PI * s) / DURATION_S), 0.2) },
    { name: "fast waves", rate: (s) => 8 + 5 * Math.sin((2 * Math.PI * s) / (4 * MINUTE)) },
    { name: "slow waves", rate: (s) => 8 + 6 * Math.sin((2 * Math.PI * s) / (25 * MINUTE)) },
    { name: "sawtooth, slow rise", rate: (s) => LOW + (HIGH - LOW) * ((s / (20 * MINUTE)) % 1) },
    { name: "sawtooth, slow fall", rate: (s) => HIGH - (HIGH - LOW) * ((s / (20 * MINUTE)) % 1) },
    { name: "square wave", rate: (s) => (s % (16 * MINUTE) < 8 * MINUTE ? HIGH : LOW) },
    { name: "noise", rate: noisy(random, () => 8, 0.35) },
    { name: "batches from nothing", rate: () => 0, batch: (s) => (s > 0 && s % (15 * MINUTE) === 0 ? 600 : 0) },
  ];
}

function line(second: number, fromMinute: number, toMinute: number, from: number, to: number): number {
  const share = (second / MINUTE - fromMinute) / (toMinute - fromMinute);
  return from + (to - from) * Math.max(0, Math.min(1, share));
}

function within(second: number, from: number, long: number): boolean {
  return second >= from && second < from + long;
}

function bursts(random: Random): Shape["rate"] {
  const times = Array.from({ length: 12 }, () => ({
    from: random.next() * DURATION_S,
    long: (0.5 + 4 * random.next()) * MINUTE,
    rate: 4 + 10 * random.next(),
  }));
  return (s) =>
    2 +
    Math.min(
      16,
      times.filter(({ from, long }) => within(s, from, long)).reduce((sum, { rate }) => sum + rate, 0),
    );
}

/** What a minute brings depends on the one before: an autoregressive process on the logarithm. */
function noisy(random: Random, base: Shape["rate"], deviation: number): Shape["rate"] {
  const keeps = 0.8;
  let value = 0;
  const minutes = Array.from({ length: DURATION_S / MINUTE + 1 }, () => {
    value = keeps * value + Math.sqrt(1 - keeps ** 2) * deviation * normal(random);
    return Math.exp(value);
  });
  return (s) => base(s) * (minutes[Math.floor(s / MINUTE)] ?? 1);
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}
