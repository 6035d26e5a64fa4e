"""The pages on which people use their pods in a browser, all below ``/.pages/``."""
