"""Reading and issuing X.509 certificates. The only layer that uses the library for them."""
