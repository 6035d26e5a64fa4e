// Starts javascript-solid-server through its documented function createServer, because its
// command cannot switch two things off: the log, and the quota record, which concurrent writers
// corrupt (each write rewrites it; readers in between answer 500).
// Arguments: folder of the package, port, data folder, "conneg" or "plain", or the issuer whose
// tokens it is to trust: it trusts one on this machine only if that is named as its own.
import { pathToFileURL } from "node:url";

const [folder, port, root, mode] = process.argv.slice(2);
const { createServer } = await import(pathToFileURL(`${folder}/src/server.js`));
const provider = mode.startsWith("http:") ? { idp: true, idpIssuer: mode } : {};
const conneg = mode === "conneg";
const server = createServer({ logger: false, root, defaultQuota: 0, conneg, ...provider });
await server.listen({ host: "127.0.0.1", port: Number(port) });
