"""How long does a connection live, and how many may one address hold?

The HTTP server has no time-out for a connection that says nothing or has no request, none for a
response that nobody reads, and no limit for each address. A thread of each worker provides all
three (decision 0017).
"""
