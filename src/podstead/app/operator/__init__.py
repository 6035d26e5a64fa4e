"""The operator's commands that work beside a running server, one module for each group."""
