"""A broker's hash of a password: compared as the broker would, and never shown."""

from base64 import b64encode
from hashlib import sha256, sha512

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.password_hash import PasswordHash, hash_password

SALT = b"\x90\x8d\xc6\x0a"
# The example of RabbitMQ's own documentation of its password hashing.
DOCUMENTED = PasswordHash("rabbit_password_hashing_sha256", "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR")


def test_hash_of_the_brokers_documentation_matches():
    assert DOCUMENTED.matches("test12")
    assert not DOCUMENTED.matches("test13")


def test_password_is_hashed_as_the_broker_does():
    assert hash_password("test12", salt=SALT) == DOCUMENTED


@pytest.mark.parametrize(("name", "hashing"), [("sha256", sha256), ("sha512", sha512)])
def test_both_algorithms_of_the_broker_are_known(name, hashing):
    encoded = b64encode(SALT + hashing(SALT + "pä ss".encode()).digest()).decode()
    known = PasswordHash(f"rabbit_password_hashing_{name}", encoded)
    assert known.matches("pä ss")
    assert not known.matches("pa ss")


def test_unknown_algorithm_matches_nothing_but_what_is_written_instead_is_known():
    assert not PasswordHash("rabbit_password_hashing_md5", DOCUMENTED.encoded).matches("test12")
    assert hash_password("test12", salt=SALT).matches("test12")


@given(encoded=st.text(), password=st.text(st.characters(exclude_categories=["Cs"])))
def test_nonsense_matches_nothing_and_does_no_harm(encoded, password):
    assert not PasswordHash("rabbit_password_hashing_sha256", encoded).matches(password)


@given(password=st.text(st.characters(exclude_categories=["Cs"])), salt=st.binary(min_size=4, max_size=4))
def test_password_matches_its_own_hash(password, salt):
    assert hash_password(password, salt=salt).matches(password)


def test_nothing_of_it_is_shown():
    assert f"{DOCUMENTED!r} {DOCUMENTED}" == "PasswordHash(…) PasswordHash(…)"
