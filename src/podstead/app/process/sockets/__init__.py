"""The listener for WebSockets at an address of its own."""
