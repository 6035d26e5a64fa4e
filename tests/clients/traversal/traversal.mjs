// What applications do with @comunica/query-sparql-link-traversal-solid: queries of whatever is
// found by following links from some documents, and of SPARQL endpoints.

import { QueryEngine } from "@comunica/query-sparql-link-traversal-solid";

const engine = new QueryEngine();

function named(bindings) {
  return Object.fromEntries([...bindings].map(([variable, term]) => [variable.value, term.value]));
}

export async function select({ query, sources, fetch }) {
  await engine.invalidateHttpCache();
  const found = await engine.queryBindings(query, { sources, lenient: true, fetch });
  return (await found.toArray()).map(named);
}
