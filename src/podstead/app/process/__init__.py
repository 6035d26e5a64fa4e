"""The main process and its workers: starting, listening, TLS, logging and stopping."""
