"""Where large bodies are: immutable blobs, one file each, that the engine's rows refer to."""
