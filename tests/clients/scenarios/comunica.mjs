// What applications do with @comunica/query-sparql-solid: queries and updates of documents, with the
// session of a user who has signed in.

import { QueryEngine } from "@comunica/query-sparql-solid";

const SESSION = "@comunica/actor-http-inrupt-solid-client-authn:session";

// One engine, as applications have one: it takes long to make.
const engine = new QueryEngine();

/** What a query is told besides its text; documents of former queries are not remembered. */
async function context({ sources, destination, lenient = false, webId, fetch }) {
  await engine.invalidateHttpCache();
  const session = { info: { isLoggedIn: true, webId }, fetch };
  return { sources, lenient, [SESSION]: session, ...(destination && { destination }) };
}

function named(bindings) {
  return Object.fromEntries([...bindings].map(([variable, term]) => [variable.value, term.value]));
}

export async function select({ query, ...given }) {
  const found = await engine.queryBindings(query, await context(given));
  return (await found.toArray()).map(named);
}

export async function ask({ query, ...given }) {
  return engine.queryBoolean(query, await context(given));
}

/** The triples as N-Triples. */
export async function construct({ query, ...given }) {
  const result = await engine.query(query, await context(given));
  const { data } = await engine.resultToString(result, "application/n-triples");
  let text = "";
  for await (const chunk of data) text += chunk;
  return text;
}

export async function update({ query, ...given }) {
  await engine.queryVoid(query, await context(given));
}

/** Changes a document, then asks it, with all that the engine remembers of the time before. */
export async function updateAndSelect({ update, query, ...given }) {
  const remembering = await context(given);
  const before = await engine.queryBindings(query, remembering);
  const told = { before: (await before.toArray()).map(named) };
  await engine.queryVoid(update, remembering);
  const after = await engine.queryBindings(query, remembering);
  return { ...told, after: (await after.toArray()).map(named) };
}
