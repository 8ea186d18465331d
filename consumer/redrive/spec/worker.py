"""`spec.worker`: the pods that run a handler, and how they run it.

A consumer without a worker runs elsewhere. What the pod template holds beyond labels and annotations is left raw: it is
merged into a Deployment, and the API server knows best what belongs there. Only how deep it nests is bounded, because
whoever walks over it does so by recursion, and how much it holds: a few bytes of JSON are a hundred in memory, for as
long as the object is there.
"""

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from itertools import chain
from typing import Any

from redrive.errors import SpecError
from redrive.spec.envelope import SUBDOMAIN
from redrive.spec.fields import Fields, Reader, choice, duration, integer, items, mapping, show, string, text

# In an http worker the user's container shares the pod's network with the runtime, which serves its metrics here.
METRICS_PORT = 9464

LONGEST_TRY = timedelta(hours=24)

_IDENTIFIERS = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*"
RUNNERS = ("python", "command", "http")

# Printable ASCII without the space, and for the path without "#". Classes such as \s would not do: the API server's has
# no vertical tab.
_IMAGE = r"[!-~]+"
_PATH = r"/[!-\"$-~]*"

# The syntax of labels. Keys of annotations have the same, but what is before their "/" may be in upper case.
_LABEL_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = re.compile(rf"({SUBDOMAIN}/)?{_LABEL_NAME}", re.ASCII)
_ANNOTATION_KEY = re.compile(_LABEL_KEY.pattern, re.ASCII | re.IGNORECASE)
_LONGEST_PREFIX = 253
_KEY_SAYS = (
    'must have keys of at most 63 letters, digits, "-", "_" and ".", with a letter or digit at both ends, '
    'after a DNS name and "/" if you like, such as example.com/team'
)

# The deepest field of a pod's spec is at ten or so.
_DEEPEST = 32

# A pod with hundreds of variables has a thousand values or two. Letters are those of all texts and names of fields.
_MOST_VALUES = 5_000
_MOST_LETTERS = 262_144

# As many as Kubernetes takes of one object's annotations, names and values together.
_MOST_ANNOTATED = 262_144

# What the operator must decide itself, with the reason.
_OWNED = {
    "restartPolicy": "must be left out: a worker is always restarted",
    "terminationGracePeriodSeconds": "must be left out: it follows from spec.worker.timeout",
}


class PythonMode(StrEnum):
    """Where a Python handler runs, and so whom its crash can hurt."""

    PROCESS = "Process"
    THREAD = "Thread"
    ASYNC = "Async"


@dataclass(frozen=True, slots=True)
class PythonRunner:
    """Calls a function; `handler` is `module:function`."""

    handler: str
    mode: PythonMode


@dataclass(frozen=True, slots=True)
class ExitCodes:
    """What a program's exit codes mean; a code that is nowhere means retry."""

    done: tuple[int, ...]
    reject: tuple[int, ...]
    snooze: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CommandRunner:
    """Runs a program a message; no shell reads `args`."""

    args: tuple[str, ...]
    exit_codes: ExitCodes


@dataclass(frozen=True, slots=True)
class HttpRunner:
    """Posts to the user's container in the same pod."""

    port: int
    path: str


Runner = PythonRunner | CommandRunner | HttpRunner

_Container = Mapping[Any, Any] | list[Any] | tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Worker:
    """The pods. `timeout` is that of one try; `pod_template` is raw, and not to be written to."""

    image: str
    concurrency: int
    timeout: timedelta
    runner: Runner
    pod_template: Mapping[str, Any] = field(hash=False)


def parse_worker(raw: object, path: str) -> Worker:
    fields = Fields(raw, path, ["image", "concurrency", "timeout", *RUNNERS, "podTemplate"])
    says = "must be an image reference without spaces, in ASCII, such as shop/orders:1.4"
    return Worker(
        image=fields.required("image", text(1, 1024, pattern=_IMAGE, says=says)),
        concurrency=fields.default("concurrency", integer(1, 1000), 1),
        timeout=fields.default("timeout", duration(timedelta(milliseconds=100), LONGEST_TRY), timedelta(seconds=300)),
        runner=parse_runner(fields),
        pod_template=fields.nested("podTemplate", _parse_pod_template),
    )


def parse_runner(fields: Fields) -> Runner:
    match fields.exactly_one(*RUNNERS):
        case "python":
            return fields.required("python", _parse_python)
        case "command":
            return fields.required("command", _parse_command)
        case _:
            return fields.required("http", _parse_http)


def _parse_python(raw: object, path: str) -> PythonRunner:
    fields = Fields(raw, path, ["handler", "mode"])
    says = "must be module:function, such as shop.orders:handle"
    return PythonRunner(
        handler=fields.required("handler", text(3, 255, pattern=f"{_IDENTIFIERS}:{_IDENTIFIERS}", says=says)),
        mode=fields.default("mode", choice(PythonMode), PythonMode.PROCESS),
    )


def _parse_command(raw: object, path: str) -> CommandRunner:
    fields = Fields(raw, path, ["args", "exitCodes"])
    args = fields.required("args", items(_argument, at_least=1, at_most=64))
    if not args[0]:
        raise SpecError(fields.path("args"), "must begin with the program to run")
    return CommandRunner(args=args, exit_codes=fields.nested("exitCodes", _parse_exit_codes))


def _argument(raw: object, path: str) -> str:
    argument = text(0, 4096)(raw, path)
    if "\0" in argument:
        raise SpecError(path, "must have no NUL character, which no program can be given: remove it")
    return argument


def _parse_exit_codes(raw: object, path: str) -> ExitCodes:
    fields = Fields(raw, path, ["done", "reject", "snooze"])
    codes = items(integer(0, 255), at_most=32, unique=True)
    usual: dict[str, tuple[int, ...]] = {"done": (0,), "reject": (3,), "snooze": (4,)}
    done, reject, snooze = (fields.default(name, codes, default) for name, default in usual.items())
    twice = {*done} & {*reject} | {*done} & {*snooze} | {*reject} & {*snooze}
    if twice:
        raise SpecError(path, f"has {min(twice)} in two lists: leave each code in one of done, reject and snooze")
    return ExitCodes(done, reject, snooze)


def _parse_http(raw: object, path: str) -> HttpRunner:
    fields = Fields(raw, path, ["port", "path"])
    port = fields.default("port", integer(1, 65535), 8080)
    if port == METRICS_PORT:
        problem = f"must not be {METRICS_PORT}, where the runtime in the same pod serves its metrics"
        raise SpecError(fields.path("port"), f"{problem}: choose another port")
    says = 'must begin with "/" and have no spaces, no "#" and nothing beyond ASCII: write those percent-encoded'
    return HttpRunner(port=port, path=fields.default("path", text(1, 1024, pattern=_PATH, says=says), "/"))


def _parse_pod_template(raw: object, path: str) -> Mapping[str, Any]:
    fields = Fields(raw, path, ["metadata", "spec"])
    metadata = fields.nested("metadata", _parse_pod_metadata)
    spec = fields.nested("spec", mapping)
    for name, reason in _OWNED.items():
        if spec.get(name) is not None:
            raise SpecError(f"{path}.spec.{name}", reason)
    _refuse_large(spec, f"{path}.spec")
    return {"metadata": metadata, "spec": copy.deepcopy({**spec})}


def _refuse_large(raw: Mapping[str, Any], path: str) -> None:
    # Level by level, as JSON would be written: with aliases, a few lines of YAML make a huge tree, or a ring. Lengths
    # are added up before anything is gathered, so that what is far too large costs no more than it does already.
    level: list[_Container] = [raw]
    values = letters = 0
    for _ in range(_DEEPEST):
        values += sum(map(len, level))
        if values > _MOST_VALUES:
            raise SpecError(path, f"must not hold more than {_MOST_VALUES} values in all: no pod needs that")
        held = [value for outer in level for value in _held_by(outer)]
        letters += sum(len(text) for text in held if isinstance(text, str))
        if letters > _MOST_LETTERS:
            problem = f"must not hold more than {_MOST_LETTERS} characters, names of fields included"
            raise SpecError(path, f"{problem}: have longer texts in a ConfigMap or in the image")
        level = [inner for inner in held if isinstance(inner, Mapping | list | tuple)]
        if not level:
            return
    raise SpecError(path, f"must not nest deeper than {_DEEPEST} levels: no field of a pod does")


def _held_by(outer: _Container) -> Iterable[object]:
    return chain(outer, outer.values()) if isinstance(outer, Mapping) else outer


def _parse_pod_metadata(raw: object, path: str) -> Mapping[str, Mapping[str, str]]:
    fields = Fields(raw, path, ["labels", "annotations"])
    return {
        "labels": fields.nested("labels", _notes("label", _LABEL_KEY, _label_value)),
        "annotations": fields.nested("annotations", _parse_annotations),
    }


def _parse_annotations(raw: object, path: str) -> Mapping[str, str]:
    annotations = _notes("annotation", _ANNOTATION_KEY, text(0, 65536))(raw, path)
    size = sum(len(key.encode()) + len(note.encode()) for key, note in annotations.items())
    if size > _MOST_ANNOTATED:
        problem = f"must have at most {_MOST_ANNOTATED} bytes, names and values together, got {size}"
        raise SpecError(path, f"{problem}: Kubernetes takes no more")
    return annotations


def _notes(what: str, keys: re.Pattern[str], value: Reader[str]) -> Reader[Mapping[str, str]]:
    def read(raw: object, path: str) -> Mapping[str, str]:
        notes = {key: note for key, note in mapping(raw, path).items() if note is not None}
        if len(notes) > 64:
            raise SpecError(path, f"must have at most 64 {what}s, got {len(notes)}")
        for key in notes:
            if string(key, path).startswith("redrive.dev/"):
                raise SpecError(path, f'must not begin "redrive.dev/", which the operator sets: choose another {what}')
            if key.find("/") > _LONGEST_PREFIX or not keys.fullmatch(key):
                raise SpecError(path, f"{_KEY_SAYS}, got {show(key)}")
        return {key: value(note, f"{path}.{key}") for key, note in notes.items()}

    return read


def _label_value(raw: object, path: str) -> str:
    says = 'must be a label\'s value, in letters, digits, "-", "_" and ".", with a letter or digit at both ends'
    return text(0, 63, pattern=f"({_LABEL_NAME})?", says=says)(raw, path)
