/**
 * Lint rule: time, chance and ids come through the kernel's ports and no other way, so that the simulator can own them. The files that may touch the real
 * ones are named in .oxlintrc.json, each an adapter.
 */
const MEMBERS = {
  Date: ["now"],
  Math: ["random"],
  performance: ["now"],
  process: ["hrtime"],
  AbortSignal: ["timeout"],
  crypto: ["randomUUID", "getRandomValues"],
};
const CALLS = ["setTimeout", "setInterval"];
const IMPORTS = {
  "node:crypto": ["randomUUID", "randomBytes", "randomInt", "randomFill", "randomFillSync"],
  "node:timers": ["setTimeout", "setInterval"],
  "node:timers/promises": ["setTimeout", "setInterval", "scheduler"],
};

const message = (what) => `${what} hides time or chance: take the kernel's Clock, Random or Ids`;

const rule = {
  create(context) {
    const isGlobal = (node) => {
      for (let scope = context.sourceCode.getScope(node); scope; scope = scope.upper) {
        const variable = scope.set.get(node.name);
        if (variable) return variable.defs.length === 0;
      }
      return true;
    };
    return {
      MemberExpression(node) {
        if (node.object.type !== "Identifier" || node.computed) return;
        if (MEMBERS[node.object.name]?.includes(node.property.name) && isGlobal(node.object))
          context.report({ node, message: message(`${node.object.name}.${node.property.name}`) });
      },
      NewExpression(node) {
        if (node.callee.type === "Identifier" && node.callee.name === "Date" && node.arguments.length === 0)
          context.report({ node, message: message("new Date()") });
      },
      CallExpression(node) {
        if (node.callee.type === "Identifier" && CALLS.includes(node.callee.name) && isGlobal(node.callee))
          context.report({ node, message: message(`${node.callee.name}()`) });
      },
      ImportDeclaration(node) {
        if (!(node.source.value in IMPORTS)) return;
        const names = IMPORTS[node.source.value];
        for (const specifier of node.specifiers)
          if (names.includes(specifier.imported?.name))
            context.report({ node: specifier, message: message(`${node.source.value}'s ${specifier.local.name}`) });
      },
    };
  },
};

export default { meta: { name: "relevo" }, rules: { "hidden-clock": rule } };
