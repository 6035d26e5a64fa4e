"""The blob store for large bodies: immutable files that the rows of the engine refer to."""
