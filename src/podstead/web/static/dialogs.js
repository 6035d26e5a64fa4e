// What the dialogs have in common that are loaded when they are needed.

/**
 * Let the browser's Back close a dialog that has just been opened, as people expect on a phone.
 * @param {HTMLDialogElement} dialog
 * @param {() => void} [afterwards] done when it is closed and the history is as before
 */
export function closeByBack(dialog, afterwards = () => {}) {
  const closed = new AbortController();
  const { signal } = closed;
  history.pushState({ dialog: true }, "");
  addEventListener("popstate", () => dialog.close(), { signal });
  dialog.addEventListener(
    "close",
    () => {
      closed.abort();
      if (!history.state?.dialog) return afterwards();
      addEventListener("popstate", afterwards, { once: true });
      history.back();
    },
    { once: true },
  );
}
