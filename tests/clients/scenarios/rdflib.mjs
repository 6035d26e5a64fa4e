// What applications do with rdflib.js: a store, its Fetcher and its UpdateManager.

import { Fetcher, Namespace, UpdateManager, blankNode, graph, literal, lit, st, sym } from "rdflib";

const FOAF = Namespace("http://xmlns.com/foaf/0.1/");
const LDP = Namespace("http://www.w3.org/ns/ldp#");
const STAT = Namespace("http://www.w3.org/ns/posix/stat#");
const DCT = Namespace("http://purl.org/dc/terms/");
const RDF = Namespace("http://www.w3.org/1999/02/22-rdf-syntax-ns#");

/**
 * A store as an application makes it. `protocol` is "N3PATCH" where the other of the two protocols
 * that the UpdateManager speaks is to be used, which it would choose for servers without the first.
 */
function open(fetch, protocol) {
  const store = graph();
  const fetcher = new Fetcher(store, { fetch });
  const updater = new UpdateManager(store);
  if (protocol) updater.editable = () => protocol;
  return { store, fetcher, updater };
}

const written = (statements) => statements.map((statement) => statement.toNT()).sort();

// --- Reading ----------------------------------------------------------------------------------

export async function load({ url, fetch }) {
  const { store, fetcher } = open(fetch);
  await fetcher.load(url);
  return written(store.statementsMatching(null, null, null, sym(url)));
}

export async function loadMissing({ url, fetch }) {
  const { fetcher } = open(fetch);
  try {
    await fetcher.load(url);
  } catch (error) {
    return { status: error.status, nonexistent: fetcher.nonexistent[url] };
  }
}

/** What the response's headers say, as the store has it beside the document's own statements. */
export async function readMetadata({ url, fetch }) {
  const { store, fetcher } = open(fetch);
  await fetcher.load(url);
  const about = store.statementsMatching(sym(url)).filter((found) => found.graph.value !== url);
  const linked = (relation) =>
    about.filter((found) => found.predicate.value === relation).map((found) => found.object.value);
  return {
    describedBy: linked("http://www.iana.org/assignments/link-relations/describedby"),
    seeAlso: linked("http://www.w3.org/2000/01/rdf-schema#seeAlso"),
    acl: linked("http://www.iana.org/assignments/link-relations/acl"),
    contentLocation: fetcher.getHeader(sym(url), "content-location"),
    // Beside those that are the library's own.
    types: linked(RDF("type").value)
      .filter((type) => !type.startsWith("http://www.w3.org/2007/ont/link#"))
      .sort(),
  };
}

/** Loads a document and what its answer says describes it. */
export async function loadWithDescription({ url, fetch }) {
  const { store, fetcher } = open(fetch);
  await fetcher.load(url);
  const described = sym("http://www.iana.org/assignments/link-relations/describedby");
  await fetcher.load(store.any(sym(url), described));
  return store.anyValue(sym(url), DCT("title"));
}

export async function list({ url, fetch }) {
  const { store, fetcher } = open(fetch);
  await fetcher.load(url);
  return store.each(sym(url), LDP("contains")).map((member) => ({
    url: member.value,
    types: store.each(member, RDF("type")).map((type) => type.value),
    isContainer: store.holds(member, RDF("type"), LDP("Container")),
    size: store.anyJS(member, STAT("size")),
    mtime: store.anyJS(member, STAT("mtime")),
    modified: store.anyValue(member, DCT("modified")),
  }));
}

// --- Whether it can be edited -----------------------------------------------------------------

export async function editable({ url, fetch }) {
  const { updater, fetcher } = open(fetch);
  const before = updater.editable(url);
  await fetcher.load(url).catch(() => undefined);
  return { before: before ?? null, after: updater.editable(url) ?? null };
}

// --- Changing ---------------------------------------------------------------------------------

export async function rename({ url, from, to, protocol, fetch }) {
  const { store, fetcher, updater } = open(fetch, protocol);
  const [document, me] = [sym(url), sym(`${url}#me`)];
  await fetcher.load(document);
  const old = from === undefined ? [] : [st(me, FOAF("name"), literal(from), document)];
  const added = to === undefined ? [] : [st(me, FOAF("name"), literal(to), document)];
  await updater.update(old, added);
  return written(store.statementsMatching(null, null, null, document));
}

/** Inserts into a document that was never loaded, and may not be there. */
export async function insertUnread({ url, name, protocol, fetch }) {
  const { updater } = open(fetch, protocol);
  await updater.update([], [st(sym(`${url}#me`), FOAF("name"), lit(name, "en"), sym(url))]);
}

export async function insertAddress({ url, city, protocol, fetch }) {
  const { fetcher, updater } = open(fetch, protocol);
  const document = sym(url);
  await fetcher.load(document);
  const address = blankNode();
  await updater.update(
    [],
    [
      st(sym(`${url}#me`), sym(`${url}#address`), address, document),
      st(address, sym(`${url}#city`), literal(city), document),
    ],
  );
}

/** Changes a statement about a blank node, which rdflib names by a WHERE of all around it. */
export async function move({ url, from, to, protocol, fetch }) {
  const { store, fetcher, updater } = open(fetch, protocol);
  const document = sym(url);
  await fetcher.load(document);
  const city = sym(`${url}#city`);
  const address = store.any(null, city, literal(from), document);
  const added = to === undefined ? [] : [st(address, city, literal(to), document)];
  await updater.update([st(address, city, literal(from), document)], added);
}

export async function removeAddress({ url, city, protocol, fetch }) {
  const { store, fetcher, updater } = open(fetch, protocol);
  const document = sym(url);
  await fetcher.load(document);
  const address = store.any(null, sym(`${url}#city`), literal(city), document);
  await updater.update(store.connectedStatements(address, document), []);
}

/** The older calls, whose requests have the WHERE first. */
async function change(call, predicate, { url, city, fetch }) {
  const { store, fetcher, updater } = open(fetch);
  const document = sym(url);
  await fetcher.load(document);
  const address = store.any(null, sym(`${url}#city`), literal(city), document);
  const statement = st(address, sym(`${url}#${predicate}`), literal(city), document);
  await new Promise((resolve, reject) => {
    updater[call](statement, (_, ok, message) => (ok ? resolve() : reject(new Error(message))));
  });
}

export const insertStatement = (given) => change("insert_statement", "canton", given);
export const deleteStatement = (given) => change("delete_statement", "city", given);

export async function updateMany({ urls, name, fetch }) {
  const { updater } = open(fetch);
  await updater.updateMany(
    [],
    urls.map((url) => st(sym(`${url}#me`), FOAF("name"), literal(name), sym(url))),
  );
}

export async function put({ url, names, fetch }) {
  const { updater } = open(fetch);
  const document = sym(url);
  const statements = names.map((name) => st(sym(`${url}#me`), FOAF("name"), literal(name), document));
  await new Promise((resolve, reject) => {
    updater.put(document, statements, "text/turtle", (_, ok, message) =>
      ok ? resolve() : reject(new Error(message)),
    );
  });
}

export async function putBack({ url, name, fetch }) {
  const { store, fetcher } = open(fetch);
  await fetcher.load(url);
  store.add(sym(`${url}#me`), FOAF("nick"), literal(name), sym(url));
  await fetcher.putBack(url, { contentType: "text/turtle" });
}

export async function putBackLater({ url, gone, name, fetch }) {
  const { store, fetcher } = open(fetch);
  await fetcher.load(url);
  store.add(sym(`${url}#me`), FOAF("nick"), literal(name), sym(url));
  await fetch(url + gone, { method: "DELETE" });
  const headers = { "Content-Type": "text/plain" };
  await fetch(`${url}later.txt`, { method: "PUT", headers, body: "text" });
  await fetcher.putBack(url, { contentType: "text/turtle" });
}

export async function createIfNotExists({ url, fetch }) {
  const { fetcher } = open(fetch);
  const response = await fetcher.createIfNotExists(sym(url));
  return response.status;
}

export async function createContainer({ url, slug, fetch }) {
  const { fetcher } = open(fetch);
  const response = await fetcher.createContainer(url, slug);
  return response.headers.get("Location");
}

export async function copy({ url, to, type, fetch }) {
  const { fetcher } = open(fetch);
  await fetcher.webCopy(url, to, type);
}

export async function remove({ url, fetch }) {
  const { store, fetcher } = open(fetch);
  await fetcher.load(url);
  await fetcher.delete(url);
  return store.statementsMatching(null, null, null, sym(url)).length;
}
