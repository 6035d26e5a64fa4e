// What applications do with @inrupt/solid-client: who may do what, by ACLs.

import {
  createAcl,
  createAclFromFallbackAcl,
  deleteAclFor,
  getAgentAccess,
  getAgentAccessAll,
  getFallbackAcl,
  getFileWithAcl,
  getGroupAccess,
  getPublicAccess,
  getResourceAcl,
  getResourceInfo,
  getResourceInfoWithAcl,
  getSolidDatasetWithAcl,
  getSourceUrl,
  hasAccessibleAcl,
  saveAclFor,
  setAgentDefaultAccess,
  setAgentResourceAccess,
  setGroupResourceAccess,
  setPublicDefaultAccess,
  setPublicResourceAccess,
  universalAccess,
} from "@inrupt/solid-client";

const ALL = { read: true, append: true, write: true, control: true };

function aclsOf(resource) {
  const source = (acl) => (acl === null ? null : getSourceUrl(acl));
  return {
    own: source(getResourceAcl(resource)),
    fallback: source(getFallbackAcl(resource)),
    public: getPublicAccess(resource),
    agents: getAgentAccessAll(resource),
  };
}

export async function readDatasetWithAcl({ url, fetch }) {
  return aclsOf(await getSolidDatasetWithAcl(url, { fetch }));
}

export async function readFileWithAcl({ url, fetch }) {
  return aclsOf(await getFileWithAcl(url, { fetch }));
}

export async function readInfoWithAcl({ url, fetch }) {
  const resource = await getResourceInfoWithAcl(url, { fetch });
  return { hasAccessibleAcl: hasAccessibleAcl(resource), ...aclsOf(resource) };
}

/** The way of the library's own guide: take what holds now, add to it, save it. */
export async function letPublicAndAgent({ url, agent, publicModes, agentModes, fetch }) {
  const resource = await getSolidDatasetWithAcl(url, { fetch });
  let acl = getResourceAcl(resource) ?? createAclFromFallbackAcl(resource);
  acl = setPublicResourceAccess(acl, publicModes);
  acl = setAgentResourceAccess(acl, agent, agentModes);
  await saveAclFor(resource, acl, { fetch });
  const read = await getSolidDatasetWithAcl(url, { fetch });
  return { public: getPublicAccess(read), agent: getAgentAccess(read, agent) };
}

export async function letPublicReadMembers({ url, webId, fetch }) {
  const container = await getSolidDatasetWithAcl(url, { fetch });
  let acl = createAcl(container);
  acl = setAgentResourceAccess(acl, webId, ALL);
  acl = setAgentDefaultAccess(acl, webId, ALL);
  acl = setPublicDefaultAccess(acl, { read: true, append: false, write: false, control: false });
  await saveAclFor(container, acl, { fetch });
}

export async function letGroup({ url, group, modes, fetch }) {
  const resource = await getSolidDatasetWithAcl(url, { fetch });
  const acl = setGroupResourceAccess(createAclFromFallbackAcl(resource), group, modes);
  await saveAclFor(resource, acl, { fetch });
  return getGroupAccess(await getSolidDatasetWithAcl(url, { fetch }), group);
}

export async function removeAcl({ url, fetch }) {
  await deleteAclFor(await getSolidDatasetWithAcl(url, { fetch }), { fetch });
  return aclsOf(await getSolidDatasetWithAcl(url, { fetch }));
}

// --- The interface that is the same for all kinds of access control ---------------------------

export async function universallyLet({ url, agent, modes, fetch }) {
  const set = await universalAccess.setAgentAccess(url, agent, modes, { fetch });
  const all = await universalAccess.getAgentAccessAll(url, { fetch });
  return { set, got: await universalAccess.getAgentAccess(url, agent, { fetch }), all };
}

export async function universallyLetPublic({ url, modes, fetch }) {
  const set = await universalAccess.setPublicAccess(url, modes, { fetch });
  return { set, got: await universalAccess.getPublicAccess(url, { fetch }) };
}

export async function findAcl({ url, fetch }) {
  const resource = await getResourceInfo(url, { fetch });
  return getSourceUrl(await universalAccess.getAclServerResourceInfo(resource, { fetch }));
}
