"""Operations on resources: the semantics of Solid's methods, independent of any HTTP framework.

Start with ``service.py``, which follows the protocol; the other modules implement its steps.
"""
