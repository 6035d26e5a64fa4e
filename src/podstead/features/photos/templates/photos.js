// The light box of all photos, and the photos that follow when the page is scrolled.

/** The tiles, in the order in which they are shown. */
const tiles = () => /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".photos .tile")]);

/** @param {HTMLElement} tile */
const linkOf = (tile) => /** @type {HTMLAnchorElement} */ (tile.querySelector("a"));

/** @typedef {typeof import("../../../web/static/look.js")} Look */

/** @type {Parameters<Look["open"]>[1]} */
const photos = {
  again: (tile) => tile,
  next: async (tile, step) => {
    const at = tiles().indexOf(tile) + step;
    while (at >= tiles().length && (await loadMore()));
    return tiles()[at];
  },
  pathOf: (tile) => linkOf(tile).pathname.replace("/.pages/files", ""),
  focusOn: (tile) => {
    linkOf(tile).focus({ preventScroll: true });
    tile.scrollIntoView({ block: "nearest" });
  },
};

/** @type {Promise<boolean> | null} */
let loading = null;

/** Append the photos of the next page; whether there are more now. */
function loadMore() {
  loading ??= append().finally(() => (loading = null));
  return loading;
}

async function append() {
  const more = document.querySelector(".more-photos");
  const link = more?.querySelector("a");
  if (!more || !link) return false;
  const response = await fetch(link.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!response?.ok || response.redirected) return false; // the link is still there
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const heading of page.querySelectorAll("main h2.month")) {
    const list = heading.nextElementSibling;
    const last = [...document.querySelectorAll("main h2.month")].at(-1);
    if (!list) continue;
    if (last?.textContent === heading.textContent) last?.nextElementSibling?.append(...list.children);
    else more.before(heading, list);
  }
  const following = page.querySelector(".more-photos");
  more.remove();
  if (following) {
    tiles().at(-1)?.parentElement?.after(following);
    watchEnd();
  }
  return true;
}

function watchEnd() {
  const more = document.querySelector(".more-photos");
  if (!more) return;
  const seen = new IntersectionObserver(
    (entries) => {
      if (!entries.some((each) => each.isIntersecting)) return;
      seen.disconnect();
      void loadMore();
    },
    { rootMargin: "1200px" },
  );
  seen.observe(more);
}

document.addEventListener("click", (event) => {
  const tile = event.target instanceof Element ? event.target.closest(".photos .tile") : null;
  if (!(tile instanceof HTMLElement) || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const address = new URL("look.js", import.meta.url).href; // which is served from the same folder
  const look = /** @type {Promise<Look>} */ (import(address));
  look.then(({ open }) => open(tile, photos), () => location.assign(linkOf(tile).href));
});
watchEnd();
