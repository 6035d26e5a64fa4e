"""What the operator does beside a running server; one module for each group of commands."""
