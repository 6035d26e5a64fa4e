// What every library reads from a document: one behaviour for each library, with the same arguments.
// They return quads, N-Triples or JSON-LD, whichever the library itself has.

import { createSolidLdoDataset } from "@ldo/connected-solid";
import { getSolidDataset, toRdfJsDataset } from "@inrupt/solid-client";
import { SolidEngine } from "soukai-solid";
import { construct } from "./comunica.mjs";
import { load } from "./rdflib.mjs";

const term = ({ termType, value, language, datatype }) => ({
  termType,
  value,
  language: language || null,
  datatype: datatype?.value ?? null,
});

const told = (quads) => ({
  quads: [...quads].map(({ subject, predicate, object }) => [subject, predicate, object].map(term)),
});

export async function solidClient({ url, fetch }) {
  return told(toRdfJsDataset(await getSolidDataset(url, { fetch })));
}

export async function rdflib({ url, fetch }) {
  return { nTriples: (await load({ url, fetch })).join("\n") };
}

export async function comunica({ url, webId, fetch }) {
  const query = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }";
  return { nTriples: await construct({ query, sources: [url], webId, fetch }) };
}

/** The library throws nothing: failures are results. */
export async function ldo({ url, fetch }) {
  const dataset = createSolidLdoDataset();
  dataset.setContext("solid", { fetch });
  const result = await dataset.getResource(url).read();
  if (result.isError) throw result;
  return told([...dataset].filter(({ graph }) => graph.value === url));
}

export async function soukai({ url, fetch }) {
  const container = new URL(".", url).href;
  return { jsonLd: JSON.stringify(await new SolidEngine(fetch).readOne(container, url)) };
}
