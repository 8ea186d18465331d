"""The operator's bench runs to its end in small, fills every row and leaves nothing behind. No figure is judged."""

import json
import subprocess
import sys

import pytest

from redrive_testbed.operator_manifests import NAME, NAMESPACE
from redrive_testbed.places import REPOSITORY

pytestmark = pytest.mark.timeout(900)  # whichever test comes first waits for the whole run

SECTION = "<!-- bench.fleet: begin; written by the bench, edits are lost -->\nFORMER\n<!-- bench.fleet: end -->\n"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    page = tmp_path_factory.mktemp("bench") / "page.md"
    page.write_text(f"before\n{SECTION}after\n")
    return page


@pytest.fixture(scope="module")
def run(cluster, image, page):
    """Run it where no operator is installed yet; burst asks for more than a bench in small can promise."""
    figures = page.with_suffix(".json")
    words = ("--quick", "--parts", "fleet,first-message", "--sizes", "3", "--spread", "2")
    bench(*words, "--window", "20", "--json", figures)
    bench("--from", figures, "--markdown", page)  # a quick run leaves the page alone
    return json.loads(figures.read_text())


def bench(*words):
    command = [sys.executable, "-m", "bench.fleet", *words]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_bench_of_the_operator_skips_nothing(run):
    assert run["skipped"] == []


def test_bench_of_the_operator_has_a_row_for_every_size(run):
    assert [(row["consumers"], row["spread"]) for row in run["sizes"]] == [(3, 2)]


def test_bench_of_the_operator_counts_what_is_asked_of_the_api_server(run):
    """Each consumer needs a finalizer, three objects and a status."""
    assert all(row["start"]["api_requests"]["patch"] >= 5 * row["consumers"] for row in run["sizes"])


def test_bench_of_the_operator_counts_what_is_asked_of_the_broker(run):
    assert all(row["steady"]["broker_requests"]["GET"] > 0 for row in run["sizes"])


def test_bench_of_the_operator_times_a_first_message_step_by_step(run):
    (row,) = run["first_messages"]
    assert 0 < row["queue"] <= row["handled"]
    assert 0 < row["deployment"] <= row["handled"]


def test_bench_of_the_operator_leaves_nothing_in_the_cluster(run, kubectl):
    found = kubectl("get", "namespaces,flowschemas,clusterroles", "--output", "name").stdout.split()
    left = {f"namespace/{NAMESPACE}", f"clusterrole.rbac.authorization.k8s.io/{NAME}"}
    assert [name for name in found if "/bench-" in name or name in left] == []


def test_bench_of_the_operator_writes_its_section_and_the_picture_beside_it(run, page):
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "FORMER" not in text
    assert run["facts"]["command"] in text
    assert page.with_name("fleet.png").read_bytes().startswith(b"\x89PNG")
