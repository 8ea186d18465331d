"""The chart's copies of the kinds: `crds/` as templates, which a release can switch off, keep and label.

A kind's text is taken as it is. All that is put around it is a condition, labels and the words by which Helm and
Argo CD keep it; what Helm would take for a template of its own is escaped. A test compares what is in the repository
with what comes out here, so `crds/` stays the one place where a kind is changed.
"""

import re
from pathlib import Path

from redrive_testbed.errors import Refused
from redrive_testbed.files import write_whole
from redrive_testbed.places import REPOSITORY

SOURCES = REPOSITORY / "crds"
TEMPLATES = REPOSITORY / "charts" / "redrive" / "templates" / "crds"

# Of every kind, all of its metadata: whatever else stood there would meet what is added here.
_METADATA = re.compile(r"^metadata:\n  name: (?P<name>[a-z]+\.redrive\.dev)\n(?=spec:\n)", re.MULTILINE)

_ADDED = """\
metadata:
  name: {name}
  labels:
    {{{{- include "redrive.labels" . | nindent 4 }}}}
  {{{{- if .Values.crds.keep }}}}
  annotations:
    helm.sh/resource-policy: keep
    argocd.argoproj.io/sync-options: Prune=false,Delete=false
  {{{{- end }}}}
"""


def write_templates() -> list[Path]:
    """Make the templates of all kinds anew, and remove those of kinds that are no more."""
    wanted = {TEMPLATES / source.name: build_template(source) for source in sorted(SOURCES.glob("*.yaml"))}
    for path, text in wanted.items():
        write_whole(path, text)
    for path in set(TEMPLATES.glob("*.yaml")) - set(wanted):
        path.unlink()
    return list(wanted)


def build_template(source: Path) -> str:
    """Write a kind as a template of the chart."""
    text = escape(_without_preface(source.read_text()))
    found = _METADATA.search(text)
    if found is None:
        raise Refused(f"{source}: its metadata must be a name of redrive.dev and nothing else, and spec must follow it")
    labelled = text[: found.start()] + _ADDED.format(name=found["name"]) + text[found.end() :]
    made = f"{{{{- /* Made from crds/{source.name} by `make chart`: change that one. */}}}}\n"
    return f"{made}{{{{- if .Values.crds.enabled }}}}\n{labelled}{{{{- end }}}}\n"


def escape(text: str) -> str:
    """Have Helm write what it would otherwise run."""
    return text.replace("{{", '{{ "{{" }}')


def _without_preface(text: str) -> str:
    """Leave out what the file says to whoever edits it."""
    return text[text.index("apiVersion:") :]
