// Starts javascript-solid-server through its documented function createServer, because its
// command cannot switch two things off: the log, and the quota record, which concurrent writers
// corrupt (each write rewrites it; readers in between answer 500).
// Arguments: folder of the package, port, data folder, "conneg", "notifications", "plain", "quota"
// or "quota-conneg" (with that record, and a quota of 1 TiB); or the issuer whose tokens it is to
// trust: it trusts one on this machine only if that is named as its own; or "tls:" and the folder of
// its certificate, to speak TLS and ask for certificates.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, port, root, mode] = process.argv.slice(2);
const { createServer } = await import(pathToFileURL(`${folder}/src/server.js`));
const provider = mode.startsWith("http:") ? { idp: true, idpIssuer: mode } : {};
const place = mode.startsWith("tls:") ? mode.slice("tls:".length) : null;
const files = place && {
  cert: readFileSync(`${place}/server.pem`),
  key: readFileSync(`${place}/server-key.pem`),
};
const tls = files ? { ssl: files, webidTls: true } : {};
const more = { conneg: mode.endsWith("conneg"), notifications: mode === "notifications" };
const defaultQuota = mode.startsWith("quota") ? 2 ** 40 : 0;
const all = { logger: false, root, defaultQuota, ...more, ...provider, ...tls };
const server = createServer(all);
await server.listen({ host: "127.0.0.1", port: Number(port) });
