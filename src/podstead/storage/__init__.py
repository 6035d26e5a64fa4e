"""Persistent storage: the storage protocol, its records, and the engine that implements it."""
