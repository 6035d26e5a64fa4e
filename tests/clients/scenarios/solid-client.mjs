// What applications do with @inrupt/solid-client: datasets, files and containers.

import {
  buildThing,
  createContainerAt,
  createContainerInContainer,
  createSolidDataset,
  createThing,
  deleteContainer,
  deleteFile,
  deleteSolidDataset,
  getBoolean,
  getContainedResourceUrlAll,
  getContentType,
  getDatetime,
  getDecimal,
  getEffectiveAccess,
  getFile,
  getInteger,
  getPodOwner,
  getPodUrlAll,
  getResourceInfo,
  getSolidDataset,
  getSourceUrl,
  getStringNoLocale,
  getStringNoLocaleAll,
  getStringWithLocale,
  getThing,
  getUrl,
  getUrlAll,
  getWellKnownSolid,
  isContainer,
  isRawData,
  overwriteFile,
  saveFileInContainer,
  saveSolidDatasetAt,
  saveSolidDatasetInContainer,
  setThing,
  validateContainedResourceAll,
} from "@inrupt/solid-client";

const NAME = "http://xmlns.com/foaf/0.1/name";
const NICK = "http://xmlns.com/foaf/0.1/nick";
const TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const MODIFIED = "http://purl.org/dc/terms/modified";
const SIZE = "http://www.w3.org/ns/posix/stat#size";
const STORAGE = "http://www.w3.org/ns/pim/space#Storage";

function named(name) {
  const thing = buildThing(createThing({ name: "me" })).addStringNoLocale(NAME, name).build();
  return setThing(createSolidDataset(), thing);
}

// --- Datasets ---------------------------------------------------------------------------------

export async function saveNewDataset({ url, name, fetch }) {
  const saved = await saveSolidDatasetAt(url, named(name), { fetch });
  return getStringNoLocale(getThing(saved, `${url}#me`), NAME);
}

export async function readName({ url, fetch }) {
  const dataset = await getSolidDataset(url, { fetch });
  return getStringNoLocale(getThing(dataset, `${url}#me`), NAME);
}

/** Replaces the name and adds a nickname; then, without reading again, another nickname. */
export async function changeDataset({ url, name, nicks, fetch }) {
  let dataset = await getSolidDataset(url, { fetch });
  for (const nick of nicks) {
    const changed = buildThing(getThing(dataset, `${url}#me`))
      .setStringNoLocale(NAME, name)
      .addStringNoLocale(NICK, nick)
      .build();
    dataset = await saveSolidDatasetAt(url, setThing(dataset, changed), { fetch });
  }
  return getStringNoLocaleAll(getThing(dataset, `${url}#me`), NICK);
}

/** Changes a dataset that somebody else, who does not know of this, changed in between. */
export async function changeOutdatedDataset({ url, fetch }) {
  const outdated = await getSolidDataset(url, { fetch });
  const rename = (name) =>
    setThing(
      outdated,
      buildThing(getThing(outdated, `${url}#me`)).setStringNoLocale(NAME, name).build(),
    );
  await saveSolidDatasetAt(url, rename("first"), { fetch });
  await saveSolidDatasetAt(url, rename("second"), { fetch });
}

export async function saveLiterals({ url, fetch }) {
  const thing = buildThing(createThing({ url: `${url}#it` }))
    .addStringNoLocale(`${url}#string`, 'quotes " and \\ and\nlines, 日本')
    .addStringWithLocale(`${url}#locale`, "grüezi", "de-ch")
    .addInteger(`${url}#integer`, -42)
    .addDecimal(`${url}#decimal`, 1.5)
    .addBoolean(`${url}#boolean`, true)
    .addDatetime(`${url}#datetime`, new Date("2026-11-21T08:00:00.125Z"))
    .addUrl(`${url}#url`, "https://example.org/?a=b&c=%20#d")
    .build();
  await saveSolidDatasetAt(url, setThing(createSolidDataset(), thing), { fetch });
  const read = getThing(await getSolidDataset(url, { fetch }), `${url}#it`);
  return {
    string: getStringNoLocale(read, `${url}#string`),
    locale: getStringWithLocale(read, `${url}#locale`, "de-ch"),
    integer: getInteger(read, `${url}#integer`),
    decimal: getDecimal(read, `${url}#decimal`),
    boolean: getBoolean(read, `${url}#boolean`),
    datetime: getDatetime(read, `${url}#datetime`).toISOString(),
    url: getUrl(read, `${url}#url`),
  };
}

export async function removeDataset({ url, fetch }) {
  await deleteSolidDataset(await getSolidDataset(url, { fetch }), { fetch });
}

// --- Containers -------------------------------------------------------------------------------

export async function makeContainerAt({ url, fetch }) {
  return getSourceUrl(await createContainerAt(url, { fetch }));
}

export async function makeContainerWithContentAt({ url, name, fetch }) {
  await createContainerAt(url, { initialContent: named(name), fetch });
}

export async function makeContainerIn({ url, slug, fetch }) {
  return getSourceUrl(await createContainerInContainer(url, { slugSuggestion: slug, fetch }));
}

export async function saveDatasetIn({ url, name, slug, fetch }) {
  const saved = await saveSolidDatasetInContainer(url, named(name), { slugSuggestion: slug, fetch });
  return getSourceUrl(saved);
}

export async function listContainer({ url, fetch }) {
  const container = await getSolidDataset(url, { fetch });
  return {
    isContainer: isContainer(container),
    isValid: validateContainedResourceAll(container).isValid,
    members: getContainedResourceUrlAll(container).map((member) => {
      const thing = getThing(container, member);
      return {
        url: member,
        types: getUrlAll(thing, TYPE),
        size: getInteger(thing, SIZE),
        modified: getDatetime(thing, MODIFIED).toISOString(),
      };
    }),
  };
}

export async function removeContainer({ url, fetch }) {
  await deleteContainer(url, { fetch });
}

// --- Files ------------------------------------------------------------------------------------

export async function saveFileIn({ url, name, type, bytes, fetch }) {
  const file = new File([Uint8Array.from(bytes)], name, { type });
  return getSourceUrl(await saveFileInContainer(url, file, { fetch }));
}

export async function writeFile({ url, type, bytes, fetch }) {
  const file = new Blob([Uint8Array.from(bytes)], { type });
  return getSourceUrl(await overwriteFile(url, file, { contentType: type, fetch }));
}

export async function readFile({ url, fetch }) {
  const file = await getFile(url, { fetch });
  return {
    type: getContentType(file),
    bytes: Array.from(new Uint8Array(await file.arrayBuffer())),
    isRawData: isRawData(file),
  };
}

export async function removeFile({ url, fetch }) {
  await deleteFile(url, { fetch });
}

// --- What a resource, a person and a server say of themselves ---------------------------------

export async function describeResource({ url, fetch }) {
  const resource = await getResourceInfo(url, { fetch });
  return {
    access: getEffectiveAccess(resource),
    contentType: getContentType(resource),
    isRawData: isRawData(resource),
  };
}

export async function findPods({ webId, fetch }) {
  return getPodUrlAll(webId, { fetch });
}

export async function findPodOwner({ url, fetch }) {
  return getPodOwner(await getResourceInfo(url, { fetch }));
}

export async function isStorage({ url, fetch }) {
  return getUrlAll(getThing(await getSolidDataset(url, { fetch }), url), TYPE).includes(STORAGE);
}

export async function readWellKnown({ url }) {
  return getSourceUrl(await getWellKnownSolid(url));
}
