"""The HTTP surface: ASGI in, values of ``core`` inwards, responses out."""
