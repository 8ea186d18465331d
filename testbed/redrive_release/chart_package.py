"""The chart as Helm packs it, packed twice and kept if every byte is the same.

Helm gives files the times that they have in the folder, so it packs copies that bear the commit's time.
"""

import os
import shutil
import tempfile
from pathlib import Path

from redrive_release.comparing import must_be_the_same
from redrive_release.source import Source, copy
from redrive_testbed.chart import Helm
from redrive_testbed.places import REPOSITORY, Places


def build(made_from: Source, places: Places, out: Path) -> Path:
    """Pack the chart under the project's version; raises NotTheSame with the files that differ."""
    helm = Helm.of(places)
    with tempfile.TemporaryDirectory() as folder:
        one, other = (_pack(helm, made_from, Path(folder, name)) for name in ("a", "elsewhere"))
        must_be_the_same(one, other)
        return Path(shutil.copy(one, out))


def _pack(helm: Helm, made_from: Source, folder: Path) -> Path:
    copy(REPOSITORY, folder / "source", under="charts/redrive")
    chart = folder / "source/charts/redrive"
    for path in (chart, *chart.rglob("*")):
        os.utime(path, (made_from.epoch, made_from.epoch))
    versions = ("--version", made_from.version, "--app-version", made_from.version)
    helm("package", str(chart), "--destination", str(folder), *versions)
    return next(folder.glob("*.tgz"))
