// Shows notices that a push service delivers. It runs in the service worker of the pages.

{
  const scope = /** @type {any} */ (self);

  scope.addEventListener("push", (/** @type {any} */ event) => {
    const { title, text, id, address } = event.data.json();
    event.waitUntil(
      scope.registration.showNotification(title, { body: text, tag: id, data: { address } }),
    );
  });

  scope.addEventListener("notificationclick", (/** @type {any} */ event) => {
    event.notification.close();
    event.waitUntil(scope.clients.openWindow(new URL(event.notification.data.address, location.origin)));
  });
}
