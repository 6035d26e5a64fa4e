// Buttons that copy a value: <button data-copy="value" data-done="Copied" hidden>.

for (const element of document.querySelectorAll("button[data-copy]")) {
  const button = /** @type {HTMLButtonElement} */ (element);
  if (!navigator.clipboard) continue;
  button.hidden = false;
  const text = button.textContent;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy ?? "");
    button.textContent = button.dataset.done ?? "";
    button.setAttribute("aria-live", "polite");
    setTimeout(() => (button.textContent = text), 2000);
  });
}
