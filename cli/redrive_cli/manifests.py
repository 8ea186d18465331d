"""A file of Kubernetes objects, to the one RetryingConsumer in it.

YAML or JSON, one document or several, a `List` too: what `kubectl` takes and what `kubectl get -o yaml` gives. An error
names the line of the field, when the text is YAML. The file `-` is standard input.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from redrive.errors import SpecError
from redrive.spec import Consumer, parse_consumer
from redrive_cli.errors import Misuse

KIND = "RetryingConsumer"
STANDARD_INPUT = Path("-")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The consumer of a file. `ignored` names the other objects, `folder` is where the file lies."""

    consumer: Consumer
    ignored: tuple[str, ...]
    folder: Path


@dataclass(frozen=True, slots=True)
class _Document:
    raw: Any
    node: yaml.Node | None = None


def read_manifest(path: Path) -> Manifest:
    """Read the only RetryingConsumer of a file; Misuse says why there is none, and where."""
    documents = list(_unwrap(_parse(_read(path), str(path))))
    consumers = [document for document in documents if _kind(document.raw) == KIND]
    if len(consumers) != 1:
        raise Misuse(f"{path}: {_miscounted(documents, consumers)}")
    [found] = consumers
    try:
        consumer = parse_consumer(found.raw)
    except SpecError as error:
        raise Misuse(f"{path}{_line_of(found.node, error.path)}: {error}") from error
    others = tuple(_name(document.raw) for document in documents if document is not found)
    return Manifest(consumer, others, path.absolute().parent)


def _read(path: Path) -> str:
    try:
        if path == STANDARD_INPUT:
            return sys.stdin.read()
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Misuse(f"{path} is not text in UTF-8: give a manifest in YAML or JSON") from error
    except OSError as error:
        raise Misuse(f"{path} cannot be read ({error.strerror}): name the manifest with -f") from error


def _parse(text: str, name: str) -> list[_Document]:
    if text.lstrip().startswith("{"):
        try:  # first as JSON: YAML does not take its tabs
            return [_Document(json.loads(text))]
        except (ValueError, RecursionError):
            pass
    try:
        return list(_load(text))
    except yaml.YAMLError as error:
        raise Misuse(f"{name}{_explain(error)}") from error
    except (RecursionError, ValueError) as error:
        raise Misuse(f"{name} cannot be read as YAML: it nests too deeply, or holds a value that is none") from error


def _load(text: str) -> Iterator[_Document]:
    loader = yaml.SafeLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            raw = loader.construct_document(node)
            if raw is not None:  # nothing between two `---`
                yield _Document(raw, node)
    finally:
        loader.dispose()


def _unwrap(documents: Sequence[_Document]) -> Iterator[_Document]:
    for document in documents:
        if _kind(document.raw) != "List" or not isinstance(document.raw.get("items"), list):
            yield document
            continue
        nodes = _step(document.node, "items")
        for index, item in enumerate(document.raw["items"]):
            yield _Document(item, _step(nodes, str(index)))


def _kind(raw: object) -> object:
    return raw.get("kind") if isinstance(raw, dict) else None


def _name(raw: object) -> str:
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{_kind(raw) or 'something without a kind'} {name or ''}".strip()


def _miscounted(documents: Sequence[_Document], consumers: Sequence[_Document]) -> str:
    if consumers:
        names = ", ".join(_name(document.raw).removeprefix(KIND).strip() for document in consumers)
        return f"has {len(consumers)} RetryingConsumers ({names}), and one is run at a time: give each its own file"
    others = ", ".join(_name(document.raw) for document in documents) or "nothing"
    return f"must have one RetryingConsumer, and has {others}: write `kind: {KIND}`"


def _explain(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f":{mark.line + 1}" if mark is not None else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    return f"{where} is not valid YAML: {problem}"


def _line_of(node: yaml.Node | None, path: str) -> str:
    """Find the line of a field such as `spec.queue.bindings[0].exchange`; of the nearest around it if it is missing."""
    for word in path.replace("[", ".").replace("]", "").split("."):
        inner = _step(node, word)
        if inner is None:
            break
        node = inner
    return f":{node.start_mark.line + 1}" if node is not None else ""


def _step(node: yaml.Node | None, word: str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == word), None)
    if isinstance(node, yaml.SequenceNode) and word.isdecimal() and int(word) < len(node.value):
        inner: yaml.Node = node.value[int(word)]
        return inner
    return None
