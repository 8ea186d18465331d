"""Whatever a pod template holds: it is refused with a sentence, or it leaves the worker whole."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from rearranging import places, put
from workload_bed import COMMAND, EVERYTHING, HTTP, PYTHON, TMP, build, consumer, named, template_of

from redrive.errors import SpecError
from redrive.spec.worker import METRICS_PORT
from redrive_operator.pod_template import merge_pod_template

RUNNERS = {"python": PYTHON, "command": COMMAND, "http": HTTP}

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(alphabet=st.characters(codec=None), max_size=8),
    st.sampled_from(["worker", "app", "redrive-x", "metrics", "/", "/etc", TMP, "HOSTNAME", "REDRIVE_X", METRICS_PORT]),
    st.dates(),
)
KEYS = st.sampled_from(["name", "image", "env", "mountPath", "requests"]) | st.text(max_size=4) | st.integers()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def has_null(value):
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is None or any(has_null(inner) for inner in inside)


def owned_part(worker):
    """Show what of the worker nobody else may change."""
    fields = ("image", "command", "startupProbe", "livenessProbe", "readinessProbe")
    return (
        {field: worker[field] for field in fields},
        worker["ports"][0],
        worker["env"][0],
        worker["volumeMounts"][:2],
    )


def merge_or_refuse(template, planned):
    """Merge, or return None when there is a sentence about a place in the template; anything else is a defect."""
    try:
        return merge_pod_template(template, planned)
    except SpecError as error:
        str(error).encode()
        return None if error.path.startswith("spec.worker.podTemplate") else {}


@settings(max_examples=400)
@given(data=st.data(), runner=st.sampled_from([*RUNNERS]), new=VALUES)
def test_anything_in_the_place_of_anything_is_refused_with_a_sentence_or_leaves_the_worker_whole(data, runner, new):
    path = data.draw(st.sampled_from([path for path in places(EVERYTHING) if path]))
    planned = template_of(build(consumer(RUNNERS[runner])))
    merged = merge_or_refuse(put(EVERYTHING, path, new), planned)
    if merged is None:
        return
    json.dumps(merged, allow_nan=False).encode()
    assert not has_null(merged)
    worker = named(merged["spec"]["containers"], "worker")
    assert owned_part(worker) == owned_part(named(planned["spec"]["containers"], "worker"))
    assert planned["metadata"]["labels"].items() <= merged["metadata"]["labels"].items()


@given(runner=st.sampled_from([*RUNNERS]), new=VALUES)
def test_any_template_at_all_raises_nothing_but_a_spec_error(runner, new):
    planned = template_of(build(consumer(RUNNERS[runner])))
    merge_or_refuse(new, planned)
