// What applications do with soukai-solid: models of people, films and the containers they are in.

import { SolidDocumentPermission, fetchLoginUserProfile } from "@noeldemartin/solid-utils";
import { FieldType, bootModels, setEngine } from "soukai";
import {
  SolidContainer,
  SolidEngine,
  SolidModel,
  SolidTypeIndex,
  bootSolidModels,
} from "soukai-solid";

class Person extends SolidModel {
  static rdfContexts = { foaf: "http://xmlns.com/foaf/0.1/" };
  static rdfsClasses = ["Person"];
  static timestamps = false;
  static fields = {
    name: FieldType.String,
    age: FieldType.Number,
    birthday: FieldType.Date,
    nicks: { type: FieldType.Array, items: FieldType.String, rdfProperty: "foaf:nick" },
    friend: { type: FieldType.Key, rdfProperty: "foaf:knows" },
  };
}

/** Leaves its URL to the server. */
class Guest extends Person {
  static mintsUrls = false;
}

/** Keeps its history as operations (a CRDT), in the document, beside times of creation and change. */
class Movie extends SolidModel {
  static rdfContexts = { schema: "https://schema.org/" };
  static rdfsClasses = ["Movie"];
  static history = true;
  static fields = {
    name: FieldType.String,
    rating: FieldType.Number,
    genres: { type: FieldType.Array, items: FieldType.String, rdfProperty: "schema:genre" },
  };
}

/** Leaves a tombstone when it is deleted, so that other copies learn of it. */
class LamentedMovie extends Movie {
  static tombstone = true;
}

class MovieLibrary extends SolidContainer {
  moviesRelationship() {
    return this.contains(Movie);
  }
}

bootSolidModels();
bootModels({ Person, Guest, Movie, LamentedMovie, MovieLibrary });

/** As applications do once their user has signed in; nothing is remembered from before. */
function signIn(fetch) {
  setEngine(new SolidEngine(fetch));
}

function shown(person) {
  return person && person.getAttributes();
}

// --- Models -----------------------------------------------------------------------------------

export async function create({ container, attributes, fetch }) {
  signIn(fetch);
  const birthday = attributes.birthday && new Date(attributes.birthday);
  return (await Person.at(container).create({ ...attributes, birthday })).url;
}

export async function createWhereTheServerSays({ container, name, fetch }) {
  signIn(fetch);
  return (await Guest.at(container).create({ name })).url;
}

export async function find({ url, fetch }) {
  signIn(fetch);
  return shown(await Person.find(url));
}

export async function list({ container, filters, fetch }) {
  signIn(fetch);
  const people = await Person.from(container).all(filters);
  return people.map((person) => person.name).sort();
}

export async function listOfDocuments({ urls, fetch }) {
  signIn(fetch);
  const people = await Person.all({ $in: urls });
  return people.map((person) => person.name).sort();
}

/** Changes some attributes and removes others; says what a new client finds then. */
export async function update({ url, changes, removed, fetch }) {
  signIn(fetch);
  const person = await Person.find(url);
  person.setAttributes(changes);
  for (const name of removed) person.unsetAttribute(name);
  await person.save();
  return find({ url, fetch });
}

/** Two clients read the same, then each changes something else. */
export async function updateTwice({ url, name, age, fetch }) {
  signIn(fetch);
  const [first, second] = [await Person.find(url), await Person.find(url)];
  await first.update({ name });
  await second.update({ age });
  return find({ url, fetch });
}

export async function remove({ url, fetch }) {
  signIn(fetch);
  const person = await Person.find(url);
  await person.delete();
  return person.exists();
}

// --- History ----------------------------------------------------------------------------------

export async function createWithHistory({ container, name, changes, fetch }) {
  signIn(fetch);
  const movie = await Movie.at(container).create({ name, genres: ["drama"] });
  for (const change of changes) await movie.update(change);
  return movie.url;
}

export async function readHistory({ url, fetch }) {
  signIn(fetch);
  const movie = await Movie.find(url);
  return {
    name: movie.name,
    created: movie.createdAt.toISOString(),
    updated: movie.updatedAt.toISOString(),
    operations: movie.operations.length,
  };
}

/** Two clients change the same film apart, and bring both changes together. */
export async function synchronize({ url, name, rating, fetch }) {
  signIn(fetch);
  const [mine, theirs] = [await Movie.find(url), await Movie.find(url)];
  await theirs.update({ name });
  await mine.update({ rating });
  await SolidModel.synchronize(mine, theirs);
  await mine.save();
  const found = await Movie.find(url);
  return { name: found.name, rating: found.rating };
}

export async function leaveTombstone({ container, name, fetch }) {
  signIn(fetch);
  const movie = await LamentedMovie.at(container).create({ name });
  const { url } = movie;
  await movie.delete();
  return { url, found: (await LamentedMovie.find(url)) !== null };
}

// --- Containers -------------------------------------------------------------------------------

export async function createContainer({ parent, name, fetch }) {
  signIn(fetch);
  return (await MovieLibrary.at(parent).create({ name })).url;
}

export async function renameContainer({ url, name, fetch }) {
  signIn(fetch);
  const library = await MovieLibrary.find(url);
  await library.update({ name });
  return (await MovieLibrary.find(url)).name;
}

export async function readContainer({ url, fetch }) {
  signIn(fetch);
  const library = await MovieLibrary.find(url);
  await library.loadRelation("documents");
  await library.loadRelation("movies");
  return {
    resources: library.resourceUrls,
    documents: Object.fromEntries(
      library.documents.map(({ url, updatedAt }) => [url, updatedAt.getTime() / 1000]),
    ),
    movies: library.movies.map((movie) => movie.name),
    updated: library.updatedAt.getTime() / 1000,
  };
}

export async function addToContainer({ url, name, fetch }) {
  signIn(fetch);
  const library = await MovieLibrary.find(url);
  await library.loadRelation("movies");
  return (await library.relatedMovies.create({ name })).url;
}

export async function listContainers({ parent, fetch }) {
  signIn(fetch);
  const containers = await SolidContainer.from(parent).all();
  return Object.fromEntries(containers.map(({ url, name }) => [url, name ?? null]));
}

export async function removeContainer({ url, fetch }) {
  signIn(fetch);
  const library = await MovieLibrary.find(url);
  await library.delete();
  return library.exists();
}

// --- Access and discovery ---------------------------------------------------------------------

/** Makes a document public or private; says what its headers told before, and what it is now. */
export async function setPublic({ url, isPublic, fetch }) {
  signIn(fetch);
  const person = await Person.find(url);
  const before = person.isPublic;
  await person.updatePublicPermissions(isPublic ? [SolidDocumentPermission.Read] : []);
  return { before, after: (await Person.find(url)).isPublic };
}

/** Registers a container for films where applications look for them, and looks for it. */
export async function registerContainer({ webId, pod, container, fetch }) {
  signIn(fetch);
  const user = { webId, storageUrls: [pod], writableProfileUrl: pod };
  const index = await SolidTypeIndex.createPublic(user);
  await new MovieLibrary({ url: container }, true).register(index.url, Movie);
  const found = await SolidContainer.fromTypeIndex(index.url, Movie);
  return { index: index.url, found: found.map(({ url }) => url) };
}

/** As applications do first, with the WebID that the login told them. */
export async function readProfile({ webId, fetch }) {
  return fetchLoginUserProfile(webId, { fetch });
}
