// The arrow keys and a finger that goes across turn to the picture before or after.

/** @param {string} rel */
const turn = (rel) => {
  const link = document.querySelector(`.beside [rel=${rel}]`);
  if (link instanceof HTMLAnchorElement) link.click();
};

document.addEventListener("keydown", (event) => {
  const { key, target, ctrlKey, metaKey, altKey } = event;
  const isTyping = target instanceof Element && target.matches("input, textarea, select");
  if (isTyping || ctrlKey || metaKey || altKey) return;
  if (key === "ArrowRight") turn("next");
  else if (key === "ArrowLeft") turn("prev");
});

const view = document.querySelector(".view");
if (view instanceof HTMLElement && document.querySelector(".beside")) {
  let [x, y] = [0, 0];
  view.style.touchAction = "pan-y pinch-zoom";
  view.addEventListener("pointerdown", (event) => ([x, y] = [event.clientX, event.clientY]));
  view.addEventListener("pointerup", (event) => {
    const across = event.clientX - x;
    if (event.pointerType === "mouse" || Math.abs(across) < 60) return;
    if (Math.abs(across) > 2 * Math.abs(event.clientY - y)) turn(across < 0 ? "next" : "prev");
  });
}
