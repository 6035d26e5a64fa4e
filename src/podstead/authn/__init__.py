"""Who is asking? Proofs are verified by pure files; only ``authenticate.py`` does I/O."""
