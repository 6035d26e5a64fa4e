// What applications do with LDO (@ldo/connected-solid): typed objects over documents, and the
// containers and access rules around them. The library throws nothing: failures are results.

import { changeData, commitData } from "@ldo/connected";
import { createSolidLdoDataset, getStorageFromWebId } from "@ldo/connected-solid";
import { set } from "@ldo/ldo";

const SCHEMA = "https://schema.org/";
const TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const XSD = "http://www.w3.org/2001/XMLSchema#";

// What the library's command line makes of a shape in ShEx.
const PostShapeType = {
  shape: `${SCHEMA}PostShape`,
  schema: {
    type: "Schema",
    shapes: [
      {
        id: `${SCHEMA}PostShape`,
        type: "ShapeDecl",
        shapeExpr: {
          type: "Shape",
          extra: [TYPE],
          expression: {
            type: "EachOf",
            expressions: [
              property(TYPE, { values: [`${SCHEMA}SocialMediaPosting`] }, 1),
              property(`${SCHEMA}articleBody`, { datatype: `${XSD}string` }, 1),
              property(`${SCHEMA}position`, { datatype: `${XSD}integer` }, 1),
              property(`${SCHEMA}image`, { nodeKind: "iri" }, 1),
              property(`${SCHEMA}keywords`, { datatype: `${XSD}string` }, -1),
              property(`${SCHEMA}author`, { nodeKind: "nonliteral" }, 1),
              property(`${SCHEMA}name`, { datatype: `${XSD}string` }, 1),
            ],
          },
        },
      },
    ],
  },
  context: {
    type: { "@id": "@type" },
    SocialMediaPosting: `${SCHEMA}SocialMediaPosting`,
    articleBody: { "@id": `${SCHEMA}articleBody`, "@type": `${XSD}string` },
    position: { "@id": `${SCHEMA}position`, "@type": `${XSD}integer` },
    image: { "@id": `${SCHEMA}image`, "@type": "@id" },
    keywords: { "@id": `${SCHEMA}keywords`, "@type": `${XSD}string`, "@isCollection": true },
    author: { "@id": `${SCHEMA}author`, "@type": "@id" },
    name: { "@id": `${SCHEMA}name`, "@type": `${XSD}string` },
  },
};

function property(predicate, constraint, max) {
  return {
    type: "TripleConstraint",
    predicate,
    valueExpr: { type: "NodeConstraint", ...constraint },
    min: 0,
    max,
  };
}

/** A dataset that knows nothing yet, as of a page that was just loaded. */
function signIn(fetch) {
  const dataset = createSolidLdoDataset();
  dataset.setContext("solid", { fetch });
  return dataset;
}

/** Of a result, what an application decides by. */
function told(result) {
  const { type, status, resource, uri } = result;
  const parts = (result.errors ?? result.results)?.map(told);
  return { type, status: status ?? null, uri: resource?.uri ?? uri ?? null, parts };
}

/** The library has sets where others have arrays. */
function withSets(values) {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      Array.isArray(value) ? set(...value) : value,
    ]),
  );
}

// --- Documents --------------------------------------------------------------------------------

export async function createDocument({ container, name, overwrite = false, fetch }) {
  const parent = signIn(fetch).getResource(container);
  return told(
    overwrite ? await parent.createChildAndOverwrite(name) : await parent.createChildIfAbsent(name),
  );
}

export async function createPost({ document, url = document, post, fetch }) {
  const dataset = signIn(fetch);
  const created = dataset.createData(PostShapeType, url, dataset.getResource(document));
  Object.assign(created, withSets(post));
  return told(await commitData(created));
}

export async function readPost({ document, url = document, fetch }) {
  const dataset = signIn(fetch);
  await dataset.getResource(document).read();
  const post = dataset.usingType(PostShapeType).fromSubject(url);
  return {
    articleBody: post.articleBody ?? null,
    position: post.position ?? null,
    image: post.image?.["@id"] ?? null,
    keywords: post.keywords.toArray().sort(),
    author: post.author?.name ?? null,
  };
}

/** Replaces values, adds keywords and removes some; a value that is null is removed. */
export async function changePost({
  document,
  url = document,
  values,
  added = [],
  removed = [],
  fetch,
}) {
  const dataset = signIn(fetch);
  const resource = dataset.getResource(document);
  await resource.read();
  const post = changeData(dataset.usingType(PostShapeType).fromSubject(url), resource);
  for (const [name, value] of Object.entries(values)) post[name] = value ?? undefined;
  for (const keyword of added) post.keywords.add(keyword);
  for (const keyword of removed) post.keywords.delete(keyword);
  return told(await commitData(post));
}

export async function deleteProperties({ document, url = document, properties, fetch }) {
  const dataset = signIn(fetch);
  const resource = dataset.getResource(document);
  await resource.read();
  const post = changeData(dataset.usingType(PostShapeType).fromSubject(url), resource);
  for (const name of properties) delete post[name];
  return told(await commitData(post));
}

export async function deleteSubject({ document, url, fetch }) {
  const dataset = signIn(fetch);
  await dataset.getResource(document).read();
  const transaction = dataset.startTransaction();
  const [subject, graph] = [url, document].map((value) => ({ termType: "NamedNode", value }));
  transaction.deleteMatches(subject, undefined, undefined, graph);
  return told(await transaction.commitToRemote());
}

/** Two clients read the same, then each adds a keyword. */
export async function changeTwice({ document, keywords, fetch }) {
  const datasets = keywords.map(() => signIn(fetch));
  for (const dataset of datasets) await dataset.getResource(document).read();
  const results = [];
  for (const [index, dataset] of datasets.entries()) {
    const resource = dataset.getResource(document);
    const post = changeData(dataset.usingType(PostShapeType).fromSubject(document), resource);
    post.keywords.add(keywords[index]);
    results.push((await commitData(post)).type);
  }
  return results;
}

export async function read({ url, fetch }) {
  const resource = signIn(fetch).getResource(url);
  const result = await resource.read();
  return { ...told(result), absent: resource.isAbsent() ?? null };
}

export async function upload({ container, name, text, type, overwrite = false, fetch }) {
  const parent = signIn(fetch).getResource(container);
  const blob = new Blob([text]);
  return told(
    overwrite
      ? await parent.uploadChildAndOverwrite(name, blob, type)
      : await parent.uploadChildIfAbsent(name, blob, type),
  );
}

export async function readBlob({ url, fetch }) {
  const resource = signIn(fetch).getResource(url);
  const result = await resource.read();
  const text = await resource.getBlob()?.text();
  return { ...told(result), mediaType: resource.getMimeType(), text };
}

export async function remove({ url, fetch }) {
  return told(await signIn(fetch).getResource(url).delete());
}

// --- Containers -------------------------------------------------------------------------------

export async function children({ url, fetch }) {
  const container = signIn(fetch).getResource(url);
  const result = await container.read();
  const found = container.children().map((child) => [child.uri, child.type]);
  return { ...told(result), children: Object.fromEntries(found) };
}

export async function rootOf({ url, fetch }) {
  const root = await signIn(fetch).getResource(url).getRootContainer();
  return { type: root.type, uri: root.uri };
}

/** Reads the pod first: see the test. */
export async function storageOf({ webId, pod, fetch }) {
  const dataset = signIn(fetch);
  await dataset.getResource(pod).read();
  const found = await getStorageFromWebId(webId, dataset);
  return found.storageContainers.map(({ uri }) => uri);
}

// --- Access rules -----------------------------------------------------------------------------

export async function getRule({ url, fetch }) {
  const result = await signIn(fetch).getResource(url).getWac();
  return { ...told(result), rule: result.wacRule ?? null };
}

export async function setRule({ url, rule, fetch }) {
  return told(await signIn(fetch).getResource(url).setWac(rule));
}
