"""The salted hash of a password, as RabbitMQ keeps it: base64 of four bytes of salt, and the hash of salt and password.

A password is given to the broker as such a hash. So one that the broker hashed in a way that is unknown here is written
once and can be compared from then on, whatever the broker would choose itself. Nothing of it is ever shown.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from dataclasses import dataclass

SALT_BYTES = 4

_SHA256 = "rabbit_password_hashing_sha256"
_HASHES = {_SHA256: hashlib.sha256, "rabbit_password_hashing_sha512": hashlib.sha512}


@dataclass(frozen=True, slots=True, repr=False)
class PasswordHash:
    """What the broker knows of a password."""

    algorithm: str
    encoded: str

    def __repr__(self) -> str:
        return "PasswordHash(…)"

    def matches(self, password: str) -> bool:
        """Say whether it is of this password; never of one that was hashed in an unknown way."""
        hashing = _HASHES.get(self.algorithm)
        if hashing is None:
            return False
        try:
            known = b64decode(self.encoded, validate=True)
        except ValueError:
            return False
        salt, digest = known[:SALT_BYTES], known[SALT_BYTES:]
        return hmac.compare_digest(digest, hashing(salt + password.encode()).digest())


def hash_password(password: str, *, salt: bytes) -> PasswordHash:
    digest = hashlib.sha256(salt + password.encode()).digest()
    return PasswordHash(_SHA256, b64encode(salt + digest).decode())
