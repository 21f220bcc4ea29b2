/** What is to be done for a frozen pool to go on: a freeze is lifted where it was said. */
export function howToThaw(pool: string, { by }: { readonly by: string }): string {
  return by.startsWith("ConfigMap ") ? `delete or change ${by}` : `npx relevo unfreeze ${pool}`;
}
