"""``podstead check``: what is wrong with a data root, and setting it right."""
