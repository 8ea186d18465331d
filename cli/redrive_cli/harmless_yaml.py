"""YAML that steers no terminal, whatever strangers wrote; read back as the same."""

from typing import Any

import yaml

from redrive.letters.harmless_json import escape, steers


class _Dumper(yaml.SafeDumper):
    """Puts texts with such characters in double quotes, where they can be escaped."""


def _write_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if steers(text) else None)


_Dumper.add_representer(str, _write_text)


def dump_yaml(data: Any) -> str:  # noqa: ANN401 - whatever JSON holds
    return escape(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True))
