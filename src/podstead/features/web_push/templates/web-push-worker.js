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

  // Whoever signs out gets no more notices here. The push service says so to the server.
  scope.addEventListener("fetch", (/** @type {any} */ event) => {
    if (event.request.method !== "POST") return;
    if (new URL(event.request.url).pathname !== "/.pages/sign-out") return;
    event.waitUntil(
      scope.registration.pushManager
        .getSubscription()
        .then((/** @type {any} */ found) => found?.unsubscribe()),
    );
  });
}
