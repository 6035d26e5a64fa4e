// http_ece: what a browser does with a message of Web Push, by the library that push clients and servers share.

import { createECDH } from "node:crypto";

import ece from "http_ece";

/** The texts of messages for the subscription of a private key and a secret, all in base64url. */
export function texts({ privateKey, secret, messages }) {
  const own = createECDH("prime256v1");
  own.setPrivateKey(Buffer.from(privateKey, "base64url"));
  return messages.map((message) =>
    ece
      .decrypt(Buffer.from(message, "base64url"), { version: "aes128gcm", privateKey: own, authSecret: secret })
      .toString(),
  );
}
