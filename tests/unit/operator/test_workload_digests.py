"""Digests on a pod, by which its workers are rolled: they change with what they stand for, and with nothing else."""

import pytest

from redrive_operator.workload import config_digest, stretch

SECRET = {"username": "shop", "password": "secret", "host": "rabbitmq"}


def test_digest_of_credentials_is_the_same_for_the_same():
    assert stretch(SECRET, "uid-1") == stretch(dict(reversed(SECRET.items())), "uid-1")


@pytest.mark.parametrize("key", ["password", "username", "host"])
def test_digest_of_credentials_changes_with_each_key(key):
    assert stretch({**SECRET, key: "other"}, "uid-1") != stretch(SECRET, "uid-1")


def test_digest_of_credentials_heeds_no_key_that_workers_do_not_read():
    assert stretch({**SECRET, "note": "other"}, "uid-1") == stretch(SECRET, "uid-1")


def test_digest_of_credentials_is_another_in_another_secret():
    assert stretch(SECRET, "uid-1") != stretch(SECRET, "uid-2")


def test_digest_of_credentials_is_too_short_to_tell_guesses_apart():
    assert len(stretch(SECRET, "uid-1")) == 6


def test_digest_of_credentials_never_changes():
    # Another digest of the same Secret would roll every worker when the operator is upgraded.
    assert stretch(SECRET, "uid-1") == "74aa70"


def test_digest_of_a_config_never_changes():
    assert config_digest("{}\n") == "ca3d163bab055381"
