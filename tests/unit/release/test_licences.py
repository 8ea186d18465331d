"""Licences: the rule, and that every dependency keeps to it."""

import sys
from pathlib import Path

import pytest
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from packageurl import PackageURL

from redrive_release import licences, making, sboms, third_party
from redrive_release.errors import NotAllowed


def package(name, *said, kind="pypi"):
    return Component(name=name, version="1", licenses=said, purl=PackageURL(kind, None, name, "1"))


def named(text):
    return DisjunctiveLicense(name=text)


@pytest.fixture(scope="module")
def installed():
    """Everything that is installed to run, test and release Redrive."""
    return sboms.of_environment(Path(sys.prefix))


def test_every_dependency_is_under_an_allowed_licence(installed):
    names = {component.name for component in licences.python_components(installed)}
    assert {"pika", "kopf", "kubernetes", "pydantic", "typer"} <= names
    assert licences.refused(installed) == []


@pytest.mark.parametrize(
    "expression",
    ["MIT", "Apache-2.0 AND MIT", "MIT OR GPL-3.0-only", "(GPL-2.0-only OR MPL-2.0) AND BSD-3-Clause"],
)
def test_what_can_be_kept_to_is_allowed(expression):
    assert licences.is_allowed(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "GPL-3.0-only",
        "MIT AND AGPL-3.0-or-later",
        "GPL-2.0-only WITH Classpath-exception-2.0",
        "Dual License",
        "MIT AND",
        "",
    ],
)
def test_what_nobody_has_read_is_not_allowed(expression):
    assert not licences.is_allowed(expression)


def test_a_package_without_a_licence_is_refused_by_name():
    assert licences.refused(Bom(components=[package("silent")])) == ["silent 1 does not say its licence"]


def test_a_package_that_says_only_that_it_is_free_is_refused():
    vague = package("vague", named("License :: OSI Approved"))
    assert licences.refused(Bom(components=[vague])) == ["vague 1 does not say its licence"]


def test_every_declaration_of_a_package_must_be_allowed():
    both = package("both", DisjunctiveLicense(id="MIT"), named("License :: Other/Proprietary License"))
    [told] = licences.refused(Bom(components=[both]))
    assert "both 1 is under License :: Other/Proprietary License" in told


@pytest.mark.parametrize("spoken", [text for text, expression in licences.SPOKEN.items() if expression])
def test_what_older_packages_say_is_understood_and_allowed(spoken):
    assert licences.refused(Bom(components=[package("old", named(spoken))])) == []


def test_debians_packages_are_not_held_to_the_list():
    assert licences.refused(Bom(components=[package("bash", named("GPL-3+"), kind="deb")])) == []


def test_a_release_with_an_unread_licence_is_not_made():
    bom = Bom(components=[package("viral", LicenseExpression("AGPL-3.0-only"))])
    with pytest.raises(NotAllowed, match=r"to be read by somebody first:\n  viral 1 is under AGPL-3\.0-only"):
        making.must_be_allowed({"wheel": bom})


def test_the_list_names_each_package_once_with_where_it_is():
    pika = package("pika", named("License :: OSI Approved :: BSD License"), DisjunctiveLicense(id="BSD-3-Clause"))
    boms = {
        "operator image": Bom(components=[pika, package("bash", named("GPL-3+"), kind="deb")]),
        "wheel": Bom(components=[pika, package("redrive", DisjunctiveLicense(id="Apache-2.0"))]),
    }
    listed = third_party.render("1.2.0", boms)
    assert "# What Redrive 1.2.0 is made of" in listed
    assert "| pika | 1 | BSD-2-Clause OR BSD-3-Clause; BSD-3-Clause | operator image, wheel |\n" in listed
    assert "| bash | 1 | GPL-3+ | operator image |\n" in listed
    assert "| redrive |" not in listed
