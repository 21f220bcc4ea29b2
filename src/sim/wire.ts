/** What a controller says to a gateway replica, as it arrives there. */
import { type ControllerLine, controllerLineSchema } from "../model/membership.ts";

const sent = new WeakMap<ControllerLine, ControllerLine>();

/** What arrives is what the schema says; a line that goes to several is the same for each. */
export function overTheWire(line: ControllerLine): ControllerLine {
  const known = sent.get(line);
  if (known !== undefined) return known;
  const parsed = controllerLineSchema.parse(JSON.parse(JSON.stringify(line)));
  sent.set(line, parsed);
  return parsed;
}
