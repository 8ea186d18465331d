"""What a reader must know of a run before its tables: when it was, of what, by which command, and on which machine."""

import argparse
import shlex
from collections.abc import Iterable, Mapping

Facts = Mapping[str, str]


def introduce(facts: Facts) -> str:
    """Write a heading that tells this run from others on the same page, and below it how the figures came about."""
    lines = [_origin(facts), _machine(facts), _rest(facts)]
    listed = "\n".join(f"- {line}" for line in lines if line)
    return f"### {name_run(facts)}\n\n{listed}" if listed else ""


def name_run(facts: Facts) -> str:
    """Say what a run was about. An older one does not tell it by itself, but its command may."""
    asked = _read_command(facts.get("command", ""))
    parts = facts.get("parts") or ", ".join((asked.parts or "everything").split(","))
    releases = facts.get("releases") or ", ".join((asked.release or "").split(","))
    about = f"{parts}, RabbitMQ {releases}" if releases else parts
    return f"{facts['began']}: {about}" if "began" in facts else about


def _read_command(command: str) -> argparse.Namespace:
    words = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    words.add_argument("--parts")
    words.add_argument("--release")
    return words.parse_known_args(shlex.split(command))[0]


def _origin(facts: Facts) -> str:
    ended = f"until {facts['ended']}" if "ended" in facts else ""
    commit = f"commit {facts['commit']}" if "commit" in facts else ""
    return _joined((f"`{facts['command']}`" if "command" in facts else "", commit, ended))


def _machine(facts: Facts) -> str:
    known = {name: facts.get(name, "") for name in ("cores", "processor", "memory", "kernel", "load before the run")}
    return _joined(
        (
            known["cores"] and f"{known['cores']} cores",
            known["processor"],
            known["memory"],
            known["kernel"] and f"Linux {known['kernel']}",
            known["load before the run"] and f"load before the run {known['load before the run']}",
        )
    )


def _rest(facts: Facts) -> str:
    told = {"command", "commit", "began", "ended", "parts", "releases", "cores", "processor", "memory", "kernel"}
    told.add("load before the run")
    versions = (f"{name} {facts[name]}" for name in ("Python", "pika") if name in facts)
    others = (f"{name}: {value}" for name, value in facts.items() if name not in {*told, "Python", "pika"})
    return "; ".join(text for text in (_joined(versions), *others) if text)


def _joined(words: Iterable[str]) -> str:
    return ", ".join(word for word in words if word)
