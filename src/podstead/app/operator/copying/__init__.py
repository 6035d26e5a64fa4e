"""``podstead copy``: everything that a server stores, from one place to another."""
