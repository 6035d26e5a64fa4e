"""Whatever is kept: the storage protocol, its records, and the engines behind it."""
