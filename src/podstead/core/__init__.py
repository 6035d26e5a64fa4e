"""Pure types and rules that every other layer builds on: no I/O, no clock."""
