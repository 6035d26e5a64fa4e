"""The operator's console, and the pages that one-time links lead to."""
