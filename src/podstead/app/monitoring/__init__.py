"""What the server measures and checks, for the private address, the console and ``doctor``."""
