// nostr-tools: what it encrypts by NIP-44, for the vectors of that NIP.

import { createHash } from "node:crypto";

import * as nip44 from "nostr-tools/nip44";
import { getPublicKey } from "nostr-tools/pure";

const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));
const hex = (array) => Buffer.from(array).toString("hex");
const sha256 = (text) => createHash("sha256").update(text).digest("hex");

/** The public halves of secret keys. */
export const publicKeys = ({ secrets }) => secrets.map((secret) => getPublicKey(bytes(secret)));

/** The keys of pairs of a secret and a public key; of a pair that is none, nothing. */
export function conversationKeys({ pairs }) {
  return pairs.map(([secret, key]) => {
    try {
      return hex(nip44.getConversationKey(bytes(secret), key));
    } catch {
      return null;
    }
  });
}

export const paddedLengths = ({ lengths }) => lengths.map(nip44.v2.utils.calcPaddedLen);

/** The payloads of texts; of a text that is none, nothing. */
export function payloads({ messages }) {
  return messages.map(({ conversation, nonce, text }) => {
    try {
      return nip44.encrypt(text, bytes(conversation), bytes(nonce));
    } catch {
      return null;
    }
  });
}

/** The texts of payloads, or why there is none. */
export function texts({ messages }) {
  return messages.map(({ conversation, payload }) => {
    try {
      return { text: nip44.decrypt(payload, bytes(conversation)) };
    } catch (error) {
      return { error: error.message };
    }
  });
}

/** The hash of the payload of a long text, which is read again. */
export function longMessages({ messages }) {
  return messages.map(({ conversation, nonce, pattern, repeat }) => {
    const text = pattern.repeat(repeat);
    const payload = nip44.encrypt(text, bytes(conversation), bytes(nonce));
    const same = nip44.decrypt(payload, bytes(conversation)) === text;
    return { text: sha256(text), payload: sha256(payload), same };
  });
}
