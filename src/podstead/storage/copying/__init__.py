"""Copying all records of a store, row by row, into another engine."""
