// What applications do with @inrupt/solid-client.

import {
  buildThing,
  createSolidDataset,
  createThing,
  getSolidDataset,
  getStringNoLocale,
  getThing,
  saveSolidDatasetAt,
  setThing,
} from "@inrupt/solid-client";

const NAME = "http://xmlns.com/foaf/0.1/name";

function named(name) {
  const thing = buildThing(createThing({ name: "me" })).addStringNoLocale(NAME, name).build();
  return setThing(createSolidDataset(), thing);
}

export async function saveNewDataset({ url, name, fetch }) {
  await saveSolidDatasetAt(url, named(name), { fetch });
  const saved = await getSolidDataset(url, { fetch });
  return getStringNoLocale(getThing(saved, `${url}#me`), NAME);
}
