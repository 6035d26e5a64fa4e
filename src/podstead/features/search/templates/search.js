// Shows results while somebody types: the same page, of which only the results are taken.
"use strict";

(() => {
  const form = document.querySelector("form[data-search]");
  const results = document.getElementById("results");
  let timer = 0;
  let running = new AbortController();

  const show = async () => {
    running.abort();
    running = new AbortController();
    const parameters = new URLSearchParams(new FormData(form));
    const address = `${form.getAttribute("action")}?${parameters}`;
    try {
      const answer = await fetch(address, { signal: running.signal });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = page.getElementById("results");
      if (found === null) return;
      results.replaceChildren(...found.childNodes);
      history.replaceState(null, "", address);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  };

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, 250);
  });
})();
