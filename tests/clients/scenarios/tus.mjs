// tus-js-client, the reference client of the protocol.

import { Buffer } from "node:buffer";
import { randomFillSync, createHash } from "node:crypto";
import { Upload, isSupported } from "tus-js-client";

const RETRIES = [0, 10, 20, 50, 100, 200, 500, 1000, 2000, 4000, 8000];

function bytes(size) {
  return randomFillSync(Buffer.alloc(size));
}

function send(content, options) {
  let errors = 0;
  return new Promise((resolve, reject) => {
    const upload = new Upload(content, {
      retryDelays: RETRIES,
      onShouldRetry: () => ((errors += 1), true),
      onError: reject,
      onSuccess: () => resolve({ url: upload.url, errors }),
      ...options,
    });
    upload.start();
  });
}

function sha256(content) {
  return createHash("sha256").update(content).digest("hex");
}

// Upload so many bytes, in parts or in one request.
export async function upload({ endpoint, token, target, size, chunkSize, metadata, together }) {
  const content = bytes(size);
  const done = await send(content, {
    endpoint,
    headers: { Authorization: `Bearer ${token}` },
    metadata: { target, ...metadata },
    uploadDataDuringCreation: Boolean(together),
    ...(chunkSize ? { chunkSize } : {}),
  });
  return { ...done, sha256: sha256(content), isSupported };
}

// Stop after so many bytes, and continue with a new client that knows the URL only.
export async function resume({ endpoint, token, target, size, chunkSize, stopAfter }) {
  const content = bytes(size);
  const options = {
    endpoint,
    headers: { Authorization: `Bearer ${token}` },
    metadata: { target },
    chunkSize,
  };
  const url = await new Promise((resolve, reject) => {
    const first = new Upload(content, {
      ...options,
      onError: reject,
      onChunkComplete: (_, accepted) => {
        if (accepted >= stopAfter) first.abort().then(() => resolve(first.url));
      },
    });
    first.start();
  });
  const offsets = [];
  const done = await send(content, {
    ...options,
    uploadUrl: url,
    onProgress: (sent) => offsets.push(sent),
  });
  return { ...done, first: offsets[0], sha256: sha256(content) };
}

// Create an upload and end it.
export async function terminate({ endpoint, token, target }) {
  const url = await new Promise((resolve, reject) => {
    const upload = new Upload(bytes(100000), {
      endpoint,
      headers: { Authorization: `Bearer ${token}` },
      metadata: { target },
      chunkSize: 1000,
      onError: reject,
      onChunkComplete: () => upload.abort(true).then(() => resolve(upload.url), reject),
    });
    upload.start();
  });
  const response = await fetch(url, {
    method: "HEAD",
    headers: { Authorization: `Bearer ${token}`, "Tus-Resumable": "1.0.0" },
  });
  return { status: response.status };
}
