"""Which licences a dependency may have, and which it says it has.

Allowed is what lets Redrive be used, changed and passed on under its own licence by anybody. What is not in the list
is not forbidden: somebody has to read it first. Only what Redrive chooses is held to it. Debian's packages come with
the base, as programs of their own; they are listed.
"""

from collections.abc import Iterable, Mapping

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from license_expression import AND, OR, ExpressionError, get_spdx_licensing
from license_expression import LicenseExpression as Parsed

ALLOWED = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-CMU",
        "MPL-2.0",  # asks to pass on its own files' source, which are in the image as they were published
        "PSF-2.0",
        "Python-2.0",
        "Zlib",
    }
)
# What older packages say instead of an identifier. "BSD" without a number is one of two, and both are allowed.
SPOKEN: Mapping[str, str] = {
    "License :: DFSG approved": "",
    "License :: OSI Approved": "",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: BSD License": "BSD-2-Clause OR BSD-3-Clause",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
}
_SPDX = get_spdx_licensing()


def declared(component: Component) -> tuple[str, ...]:
    """What a package declares: each an expression of identifiers where it can be one, sorted."""
    return tuple(sorted({SPOKEN.get(text, text) for text in map(_text, component.licenses)} - {""}))


def is_allowed(expression: str) -> bool:
    """Say whether an expression of SPDX can be kept to with the allowed licences alone."""
    try:
        return _holds(_SPDX.parse(expression, validate=True))
    except ExpressionError:
        return False


def refused(bom: Bom) -> list[str]:
    """Name every Python package of a bill that says nothing of its licence, or something that is not allowed."""
    return [sentence for component in python_components(bom) for sentence in _judge(component)]


def python_components(bom: Bom) -> Iterable[Component]:
    return (component for component in bom.components if component.purl is not None and component.purl.type == "pypi")


def _judge(component: Component) -> list[str]:
    said = declared(component)
    if not said:
        return [f"{component.name} {component.version} does not say its licence"]
    # Several declarations hold together: who means a choice writes OR.
    return [
        f"{component.name} {component.version} is under {text}, which nobody has agreed to: redrive_release/licences.py"
        for text in said
        if not is_allowed(text)
    ]


def _holds(parsed: Parsed | None) -> bool:
    if isinstance(parsed, OR):
        return any(map(_holds, parsed.args))
    if isinstance(parsed, AND):
        return all(map(_holds, parsed.args))
    return parsed is not None and parsed.render() in ALLOWED


def _text(licence: DisjunctiveLicense | LicenseExpression) -> str:
    if isinstance(licence, LicenseExpression):
        return licence.value
    return licence.id or licence.name or ""
