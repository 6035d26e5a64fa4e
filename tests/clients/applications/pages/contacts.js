// Gives the page the contacts module, with a store of its own for each use.

import ContactsModule from "@solid-data-modules/contacts-rdflib";
import { Fetcher, UpdateManager, graph } from "rdflib";

globalThis.openContacts = (fetch) => {
  const store = graph();
  const fetcher = new Fetcher(store, { fetch });
  return new ContactsModule({ store, fetcher, updater: new UpdateManager(store) });
};
