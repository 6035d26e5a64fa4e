// Preloaded into @solid/community-server, which has no option for its address and would listen
// on all interfaces.
const { Server } = require("node:net");

const listen = Server.prototype.listen;
Server.prototype.listen = function listenOnLoopback(first, ...rest) {
  const isPort = typeof first === "number" && typeof rest[0] !== "string";
  return isPort ? listen.call(this, first, "127.0.0.1", ...rest) : listen.call(this, first, ...rest);
};
