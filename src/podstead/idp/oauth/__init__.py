"""OAuth 2.0 by the library: values in, values out. Only these files know it.

The library asks for what it needs by synchronous calls. So everything that a request can need is
read before and handed over (:class:`~podstead.idp.oauth.token.Facts`), and what it changes is
collected and committed after, in one write that fails if any of it has changed meanwhile.
"""
