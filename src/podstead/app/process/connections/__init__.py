"""Limits how long a connection may stay open, and how many one address may hold.

The HTTP server has no timeout for a connection that sends nothing or has no request, none for a
response that the client does not read, and no limit for each address. A thread in each worker
provides all three (decision 0015).
"""
