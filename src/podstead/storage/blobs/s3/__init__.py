"""Large bodies as objects of S3, or of a service that speaks its protocol.

Each blob is one object with a name of its own, written once. Only ``objects.py`` knows the library.
"""

from podstead.storage.blobs.s3.bodies import ObjectBlobs, S3Bodies
from podstead.storage.blobs.s3.objects import Objects

__all__ = ["ObjectBlobs", "Objects", "S3Bodies"]
