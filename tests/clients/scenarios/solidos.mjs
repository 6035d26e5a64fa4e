// What SolidOS (mashlib) does, in the calls of rdflib.js that its parts make: who a person is, who
// may do what, and which documents of a kind they have.

import { Fetcher, Namespace, UpdateManager, graph, st, sym } from "rdflib";

const ACL = Namespace("http://www.w3.org/ns/auth/acl#");
const FOAF = Namespace("http://xmlns.com/foaf/0.1/");
const LDP = Namespace("http://www.w3.org/ns/ldp#");
const RDF = Namespace("http://www.w3.org/1999/02/22-rdf-syntax-ns#");
const SOLID = Namespace("http://www.w3.org/ns/solid/terms#");
const SPACE = Namespace("http://www.w3.org/ns/pim/space#");
const VCARD = Namespace("http://www.w3.org/2006/vcard/ns#");
const LINK = Namespace("http://www.iana.org/assignments/link-relations/");

function open(fetch) {
  const store = graph();
  const fetcher = new Fetcher(store, { fetch });
  return { store, fetcher, updater: new UpdateManager(store) };
}

export async function readProfile({ webId, fetch }) {
  const { store, fetcher } = open(fetch);
  const me = sym(webId);
  await fetcher.load(me);
  const value = (predicate) => store.any(me, predicate)?.value;
  const preferences = store.any(me, SPACE("preferencesFile"));
  await fetcher.load(preferences);
  return {
    isPerson: store.holds(me, RDF("type"), FOAF("Person")),
    name: value(FOAF("name")),
    storage: value(SPACE("storage")),
    inbox: value(LDP("inbox")),
    publicTypeIndex: value(SOLID("publicTypeIndex")),
    privateTypeIndex: value(SOLID("privateTypeIndex")),
  };
}

/** Registers a document for a class in the public type index, as applications are set up. */
export async function registerInTypeIndex({ webId, url, kind, fetch }) {
  const { store, fetcher, updater } = open(fetch);
  await fetcher.load(webId);
  const index = store.any(sym(webId), SOLID("publicTypeIndex"));
  await fetcher.load(index);
  const entry = sym(`${index.value}#${Date.now()}`);
  await updater.update(
    [],
    [
      st(entry, RDF("type"), SOLID("TypeRegistration"), index),
      st(entry, SOLID("forClass"), sym(kind), index),
      st(entry, SOLID("instance"), sym(url), index),
    ],
  );
  return index.value;
}

export async function makeGroup({ url, members, fetch }) {
  const { updater } = open(fetch);
  const [document, group] = [sym(url), sym(`${url}#this`)];
  await updater.update(
    [],
    [
      st(group, RDF("type"), VCARD("Group"), document),
      ...members.map((member) => st(group, VCARD("hasMember"), sym(member), document)),
    ],
  );
}

export async function removeMember({ url, member, fetch }) {
  const { updater } = open(fetch);
  await updater.update([st(sym(`${url}#this`), VCARD("hasMember"), sym(member), sym(url))], []);
}

/**
 * Writes the whole ACL of a resource, as the sharing pane does: the document is named by the Link
 * of the resource, it may be missing, and it is put, not patched.
 */
export async function share({ webId, url, how, whom, fetch }) {
  const { store, fetcher, updater } = open(fetch);
  const resource = sym(url);
  await fetcher.load(resource);
  const document = store.any(resource, LINK("acl"));
  const missing = await fetcher.load(document).then(
    () => false,
    (error) => error.status === 404,
  );
  const [owner, reader] = [sym(`${document.value}#owner`), sym(`${document.value}#reader`)];
  const rule = (node, predicate, agent, modes) => [
    st(node, RDF("type"), ACL("Authorization"), document),
    st(node, ACL("accessTo"), resource, document),
    st(node, ACL(predicate), sym(agent), document),
    ...modes.map((mode) => st(node, ACL("mode"), ACL(mode), document)),
  ];
  const statements = [
    ...rule(owner, "agent", webId, ["Read", "Write", "Control"]),
    ...rule(reader, how, whom, ["Read"]),
  ];
  await new Promise((resolve, reject) => {
    updater.put(document, statements, "text/turtle", (_, ok, message) =>
      ok ? resolve() : reject(new Error(message)),
    );
  });
  return { acl: document.value, missing };
}
