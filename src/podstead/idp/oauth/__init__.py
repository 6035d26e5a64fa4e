"""OAuth 2.0 by the library, as functions from values to values. Only these modules use the library.

The library asks for what it needs by synchronous calls. Everything that a request can need is
therefore read before and passed in (:class:`~podstead.idp.oauth.token.TokenRequestRecords`), and
its changes are collected and committed afterwards, in one write that fails if any of it has changed
meanwhile.
"""
