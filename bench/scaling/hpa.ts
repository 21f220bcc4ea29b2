/**
 * The reference: Kubernetes' HorizontalPodAutoscaler (autoscaling/v2) on an external metric with a target per replica, as its documentation publishes the algorithm,
 * with its defaults. desired = ceil(metric / target), nothing within a tolerance of 10 %; looked at each 15 s; the highest of the last 300 s holds it back on the
 * way down, nothing on the way up; up by the larger of 100 % and 4 within 15 s, down by 100 % within 15 s.
 */
import { FLOOR, MAX, type Scaler, TARGET } from "./workers.ts";

const SYNC_S = 15;
const TOLERANCE = 0.1;
const DOWN_WINDOW_S = 300;
const UP_PERIOD_S = 15;

export function hpa(target = TARGET): Scaler {
  let recommended: { at: number; size: number }[] = [];
  let risen: { at: number; by: number }[] = [];
  return ({ second, desired, waiting, taken, made }) => {
    if (second % SYNC_S !== 0) return null;
    const metric = waiting + taken;
    const isNear = made > 0 && Math.abs(metric / (target * made) - 1) <= TOLERANCE;
    const wanted = isNear ? made : Math.ceil(metric / target);
    // Before its first look it takes what is there as recommended.
    if (recommended.length === 0) recommended = [{ at: second, size: desired }];
    recommended = [...recommended.filter(({ at }) => at > second - DOWN_WINDOW_S), { at: second, size: wanted }];
    const highest = Math.max(...recommended.map(({ size }) => size));
    const stable = wanted >= desired ? wanted : Math.min(desired, highest);
    risen = risen.filter(({ at }) => at > second - UP_PERIOD_S);
    const before = desired - risen.reduce((sum, { by }) => sum + by, 0);
    const most = Math.max(before * 2, before + 4);
    const size = Math.max(FLOOR, Math.min(MAX, stable > desired ? Math.min(stable, most) : stable));
    if (size > desired) risen.push({ at: second, by: size - desired });
    return size;
  };
}
