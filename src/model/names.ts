/** Names as Kubernetes has them. */
import { z } from "zod";

/** RFC 1123 label: of a namespace, a connection, and whatever else is part of a host's name. */
export const rfc1123Label = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, "lower-case letters, digits and dashes, at most 63 characters");
