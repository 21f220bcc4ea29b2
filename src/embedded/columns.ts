/** The columns of `kubectl get`. */

export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "date" | "number" | "boolean";
  /** Where the cell stands in the object, `spec.replicas`; or the name of a computed cell, `=pod-ready`. */
  readonly value: string;
  /** Shown with `-o wide` only. */
  readonly wide?: boolean;
}

const AGE: PrinterColumn = { name: "Age", type: "date", value: "metadata.creationTimestamp" };
const NAME: PrinterColumn = { name: "Name", type: "string", value: "metadata.name" };
export const column = (name: string, value: string, type: PrinterColumn["type"] = "string"): PrinterColumn => ({ name, type, value });
export const wide = (name: string, value: string, type: PrinterColumn["type"] = "string"): PrinterColumn => ({
  name,
  type,
  value,
  wide: true,
});

/** Name first, age last of what is always shown; events have neither. */
export function columnsOf(own: readonly PrinterColumn[]): readonly PrinterColumn[] {
  if (own.some((each) => each.name === "Last Seen")) return own;
  return [NAME, ...own.filter((each) => !each.wide), AGE, ...own.filter((each) => each.wide)];
}
