// Shows results while somebody types: the same page, of which only the results are taken.
"use strict";

(() => {
  const form = document.querySelector("form[data-search]");
  const results = document.getElementById("results");
  if (!(form instanceof HTMLFormElement) || results === null) return;
  let timer = 0;
  let running = new AbortController();

  /** @param {string} address @param {AbortSignal} signal */
  const show = async (address, signal) => {
    const answer = await fetch(address, { signal });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.getElementById("results");
    if (found === null) return;
    results.replaceChildren(...found.childNodes);
    history.replaceState(null, "", address);
  };

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      running.abort();
      running = new AbortController();
      const parameters = new URLSearchParams();
      for (const [name, value] of new FormData(form)) parameters.set(name, String(value));
      show(`${form.getAttribute("action")}?${parameters}`, running.signal).catch(() => {
        // A later one is on its way, or the button of the form will say what is wrong.
      });
    }, 250);
  });
})();
