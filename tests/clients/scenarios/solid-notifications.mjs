// What an application does before it subscribes to changes, with @solid-notifications/discovery.

import { DiscoveryClient } from "@solid-notifications/discovery";

const written = (store) =>
  store.getQuads().map(({ subject, predicate, object }) => [
    subject.value,
    predicate.value,
    object.value,
  ]);

export async function findStorageDescription({ url, fetch }) {
  const client = new DiscoveryClient(fetch);
  return {
    url: await client.discoverStorageDescription(url),
    triples: written(await client.fetchStorageDescription(url)),
  };
}

export async function findDescription({ url, fetch }) {
  const client = new DiscoveryClient(fetch);
  return {
    url: await client.discoverDescriptionResource(url),
    triples: written(await client.fetchDescriptionResource(url)),
  };
}
