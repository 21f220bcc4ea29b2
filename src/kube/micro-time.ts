/** Kubernetes' MicroTime: RFC 3339 with exactly six digits after the dot. Three, as `toISOString()` writes them, are refused by the server. */
import { formatInstant, type Instant } from "../kernel/clock.ts";

export function formatMicroTime(at: Instant): string {
  return formatInstant(at).replace("Z", "000Z");
}
