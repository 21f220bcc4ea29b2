/** The pod of an instance that asks for so much of a machine: how many fit on one is what a test is about. */
export function podOf(cpu: string) {
  return {
    containers: [
      {
        name: "main",
        image: "example",
        command: ["run"],
        ports: [{ containerPort: 8080 }],
        readinessProbe: { httpGet: { port: 8080 }, periodSeconds: 1 },
        resources: { requests: { cpu } },
      },
    ],
  };
}
