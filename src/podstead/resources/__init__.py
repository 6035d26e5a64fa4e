"""Operations on resources: what Solid's methods mean, without any HTTP framework.

``service.py`` reads as the protocol does; the other files are its steps.
"""
