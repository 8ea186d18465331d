"""Flags and variables: one parser, the same errors, and what is usual where nothing is told."""

import pytest

from redrive_operator.errors import SettingsError
from redrive_operator.settings import read_settings

# Each setting, what is given as text, and what is then read.
GIVEN = [
    ("namespace", "redrive-system", "redrive-system"),
    ("watch_namespaces", "shop, bills,shop,", ("shop", "bills")),
    ("identity", "prod.eu-1_a", "prod.eu-1_a"),
    ("consumer_image", "registry.example.com/consumer:1", "registry.example.com/consumer:1"),
    ("interval", "2.5", 2.5),
    ("threads", "64", 64),
    ("port", "0", 0),
    ("log_level", "debug", "debug"),
    ("pod_security", "privileged", "privileged"),
    ("worker_service_accounts", "orders, mail.shop,orders", ("orders", "mail.shop")),
    ("kubeconfig", "/tmp/config", "/tmp/config"),  # noqa: S108 - not opened
]

REFUSED = [
    ("namespace", "Shop", "is not the name of a namespace"),
    ("namespace", "a" * 64, "is not the name of a namespace"),
    ("watch_namespaces", "shop,*", "is not the name of a namespace"),
    ("identity", "-", "must be at most 100 letters"),
    ("identity", "a" * 101, "must be at most 100 letters"),
    ("identity", "a\n", "must be at most 100 letters"),
    ("worker_service_accounts", "orders,shop/mail", "is not the name of a service account"),
    ("worker_service_accounts", "orders-*", "is not the name of a service account"),
    ("worker_service_accounts", "a" * 254, "is not the name of a service account"),
    ("interval", "0.9", "must be from 1 to 60, got 0.9"),
    ("interval", "61", "must be from 1 to 60"),
    ("interval", "nan", "must be from 1 to 60"),
    ("interval", "soon", "'soon' is not a number"),
    ("threads", "0", "must be from 1 to 64"),
    ("threads", "65", "must be from 1 to 64"),
    ("threads", "2.5", "is not a whole number"),
    ("threads", "٣", "is not a whole number"),
    ("port", "65536", "must be from 0 to 65535"),
    ("port", "-1", "is not a whole number"),
    ("log_level", "loud", "loud"),
]


def flag_of(setting, value):
    return f"--{setting.replace('_', '-')}={value}"


def variable_of(setting):
    return f"REDRIVE_{setting.upper()}"


def test_nothing_needs_to_be_told():
    found = read_settings([], {})
    assert (found.watch_namespaces, found.identity, found.interval, found.log_level) == ((), None, 15.0, "info")
    assert (found.threads, found.port, found.kubeconfig) == (8, 8080, None)
    assert found.namespace
    assert found.consumer_image


@pytest.mark.parametrize(("setting", "text", "value"), GIVEN)
def test_flag_is_read(setting, text, value):
    assert getattr(read_settings([flag_of(setting, text)], {}), setting) == value


@pytest.mark.parametrize(("setting", "text", "value"), GIVEN)
def test_variable_is_read_like_its_flag(setting, text, value):
    assert getattr(read_settings([], {variable_of(setting): text}), setting) == value


@pytest.mark.parametrize(("setting", "text", "sentence"), REFUSED)
def test_unusable_flag_is_refused_with_what_to_change(setting, text, sentence):
    with pytest.raises(SettingsError) as refused:
        read_settings([flag_of(setting, text)], {})
    assert sentence in str(refused.value)
    assert f"--{setting.replace('_', '-')}" in str(refused.value)


@pytest.mark.parametrize(("setting", "text", "sentence"), REFUSED)
def test_unusable_variable_is_refused_like_its_flag(setting, text, sentence):
    with pytest.raises(SettingsError) as refused:
        read_settings([], {variable_of(setting): text})
    assert sentence in str(refused.value)


def test_flag_wins_over_its_variable():
    assert read_settings(["--threads=3"], {"REDRIVE_THREADS": "5"}).threads == 3


def test_empty_variable_counts_as_not_given():
    assert read_settings([], {"REDRIVE_THREADS": "", "REDRIVE_WATCH_NAMESPACES": ""}) == read_settings([], {})


def test_variables_of_others_are_not_looked_at():
    assert read_settings([], {"THREADS": "x", "REDRIVE_THREAD": "x", "REDRIVE_HELP": "x"}) == read_settings([], {})


def test_variable_that_kubernetes_sets_beside_a_service_called_redrive_is_not_ours():
    environment = {"REDRIVE_PORT": "tcp://10.96.0.7:8080", "REDRIVE_SERVICE_HOST": "10.96.0.7"}
    assert read_settings([], environment).port == 8080


@pytest.mark.parametrize("word", ["--thread=3", "--colour=red", "shop"])
def test_unknown_word_is_refused(word):
    with pytest.raises(SettingsError, match=word.partition("=")[0].strip("-")):
        read_settings([word], {})


def test_help_says_every_setting(capsys):
    with pytest.raises(SystemExit) as ended:
        read_settings(["--help"], {})
    assert not ended.value.code
    told = capsys.readouterr().out
    assert all(f"--{setting.replace('_', '-')}" in told for setting, _, _ in GIVEN)
