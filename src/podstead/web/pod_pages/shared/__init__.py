"""The lists of what is shared with a person and by a person."""
