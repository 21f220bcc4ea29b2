/** The sources of notices that are taken: a new one is a folder, and its line here. */
import { autoScalingSource } from "./autoscaling/parse.ts";
import { azureSource } from "./azure/parse.ts";
import { ec2MetadataSource } from "./ec2-metadata/parse.ts";
import { eventBridgeSource } from "./eventbridge/parse.ts";
import { gcpSource } from "./gcp/parse.ts";
import { webhookSource } from "./webhook/parse.ts";
import type { NoticeSource } from "./source.ts";

export const NOTICE_SOURCES: readonly NoticeSource[] = [
  eventBridgeSource,
  autoScalingSource,
  webhookSource,
  ec2MetadataSource,
  gcpSource,
  azureSource,
];

export function findSource(name: string): NoticeSource | undefined {
  return NOTICE_SOURCES.find((source) => source.name === name);
}

/** The headers that some source reads, in lower case. */
export const NOTICE_HEADERS: readonly string[] = [...new Set(NOTICE_SOURCES.flatMap(({ headers }) => headers ?? []))].toSorted();
