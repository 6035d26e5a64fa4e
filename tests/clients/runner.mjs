// Serves the behaviours of one scenario module to the Python test that started it.
//
//   node runner.mjs scenarios/solid-client.mjs
//
// Each line of standard input asks for one behaviour, as JSON:
//   {"behaviour": "savesANewDataset", "agent": {"webId": …, "token": …} | null, "arguments": {…}}
// Each line of standard output answers it:
//   {"value": …, "requests": […]}   or   {"error": {"name": …, "message": …, "status": …}, "requests": […]}
//
// A behaviour is an exported function that takes one object: the arguments, the agent's `webId`, and
// `fetch`, which sends the agent's token, as applications hand a library an authenticated fetch.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// Standard output belongs to the answers; what libraries have to say goes to standard error.
for (const level of ["debug", "info", "log"]) console[level] = console.error;

const behaviours = await import(pathToFileURL(process.argv[2]).href);

function fetchAs(agent, requests) {
  return async (input, init) => {
    const request = new Request(input, init);
    if (agent) request.headers.set("Authorization", `Bearer ${agent.token}`);
    const sent = {
      method: request.method,
      url: request.url,
      headers: Object.fromEntries(request.headers),
      // How a library says a change; of other bodies the server's state tells enough.
      patch: request.method === "PATCH" ? await request.clone().text() : null,
      status: null,
    };
    requests.push(sent);
    const response = await fetch(request);
    sent.status = response.status;
    return response;
  };
}

function described(error) {
  return {
    name: error?.name ?? typeof error,
    message: String(error?.message ?? error),
    status: error?.statusCode ?? error?.status ?? error?.response?.status ?? null,
    stack: String(error?.stack ?? ""),
  };
}

async function answer({ behaviour, agent, arguments: given }) {
  const requests = [];
  try {
    const value = await behaviours[behaviour]({
      ...given,
      webId: agent?.webId,
      fetch: fetchAs(agent, requests),
    });
    return { value: value ?? null, requests };
  } catch (error) {
    return { error: described(error), requests };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await answer(JSON.parse(line))) + "\n");
}
