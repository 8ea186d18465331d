"""A file of objects, to the one RetryingConsumer in it; what is wrong is named with its line."""

import json
from pathlib import Path

import pytest
import yaml

from redrive_cli.errors import Misuse
from redrive_cli.manifests import read_manifest

CONSUMER = """\
apiVersion: redrive.dev/v1alpha1
kind: RetryingConsumer
metadata: {name: orders, namespace: shop}
spec:
  broker:
    secretRef: {name: rabbitmq}
  retry:
    maxAttempts: 3
"""
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: rabbitmq}\n"
EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def read(tmp_path):
    """Give a function that reads a manifest with this text."""

    def read_text(text, name="consumer.yaml"):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_manifest(file)

    return read_text


def refusal(read, text):
    with pytest.raises(Misuse) as refused:
        read(text)
    folder, _, sentence = str(refused.value).partition("consumer.yaml")
    assert folder.endswith("/")
    return f"consumer.yaml{sentence}"


def test_consumer_is_read_from_yaml(read, tmp_path):
    manifest = read(CONSUMER)
    assert (manifest.consumer.address, manifest.ignored, manifest.folder) == ("shop/orders", (), tmp_path)


def test_consumer_is_read_from_json_also_with_tabs(read):
    text = json.dumps(yaml.safe_load(CONSUMER), indent="\t")
    assert read(text, "consumer.json").consumer == read(CONSUMER).consumer


def test_consumer_is_found_among_other_objects_which_are_named(read):
    manifest = read(f"---\n{SECRET}---\n{CONSUMER}---\n---\nkind: Deployment\nmetadata: {{name: shop}}\n")
    assert (manifest.consumer.name, manifest.ignored) == ("orders", ("Secret rabbitmq", "Deployment shop"))


def test_consumer_is_found_in_a_list(read):
    objects = [yaml.safe_load(SECRET), yaml.safe_load(CONSUMER)]
    manifest = read(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": objects}))
    assert (manifest.consumer.name, manifest.ignored) == ("orders", ("Secret rabbitmq",))


def test_relative_file_has_an_absolute_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "consumer.yaml").write_text(CONSUMER)
    monkeypatch.chdir(tmp_path)
    assert read_manifest(Path("here/consumer.yaml")).folder == tmp_path / "here"


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_examples_are_read_or_refused_for_having_no_consumer(example):
    has_one = "kind: RetryingConsumer" in example.read_text()
    if has_one:
        assert read_manifest(example).consumer
    else:
        with pytest.raises(Misuse, match="must have one RetryingConsumer"):
            read_manifest(example)


def test_file_that_is_not_there_is_said_to_be(tmp_path):
    with pytest.raises(Misuse, match=r"none\.yaml cannot be read \(No such file or directory\): name the manifest"):
        read_manifest(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("spec: [1, 2", "consumer.yaml:1 is not valid YAML: expected ',' or ']', but got '<stream end>'"),
        ("a: 1\n\tb: 2", "consumer.yaml:2 is not valid YAML: found character '\\t' that cannot start any token"),
        (b"\xff\xfe\x00", "consumer.yaml is not text in UTF-8: give a manifest in YAML or JSON"),
        ("a: \x07", "consumer.yaml is not valid YAML: special characters are not allowed"),
        ("at: 2024-13-45", "consumer.yaml cannot be read as YAML: it nests too deeply, or holds a value that is none"),
        ("[" * 5000, "consumer.yaml cannot be read as YAML: it nests too deeply, or holds a value that is none"),
        ("", "consumer.yaml: must have one RetryingConsumer, and has nothing: write `kind: RetryingConsumer`"),
        (
            SECRET + "---\n- 1\n",
            "consumer.yaml: must have one RetryingConsumer, and has Secret rabbitmq, something without a kind: "
            "write `kind: RetryingConsumer`",
        ),
        (
            f"{CONSUMER}---\n{CONSUMER.replace('name: orders', 'name: refunds')}",
            "consumer.yaml: has 2 RetryingConsumers (orders, refunds), and one is run at a time: "
            "give each its own file",
        ),
    ],
)
def test_what_is_no_manifest_is_refused_with_a_sentence(read, text, sentence):
    assert refusal(read, text) == sentence


@pytest.mark.parametrize(
    ("old", "new", "beginning"),
    [
        ("maxAttempts: 3", "maxAttempts: 0", "consumer.yaml:8: spec.retry.maxAttempts: must be at least 1"),
        ("maxAttempts: 3", "maxAttempt: 3", "consumer.yaml:8: spec.retry.maxAttempt: is not a field"),
        ("v1alpha1", "v9", "consumer.yaml:1: apiVersion: must be redrive.dev/v1alpha1"),
        ("    secretRef: {name: rabbitmq}", "    vhost: /", "consumer.yaml:6: spec.broker: set either"),
        ("  retry:", "  queue: {bindings: [{exchange: a}, {}]}\n  retry:", "consumer.yaml:7: spec.queue.bindings[1]"),
        ("  broker:\n    secretRef: {name: rabbitmq}\n", "", "consumer.yaml:5: spec.broker: is required"),
    ],
)
def test_field_that_cannot_be_used_is_named_with_its_line(read, old, new, beginning):
    assert refusal(read, CONSUMER.replace(old, new)).startswith(beginning)


def test_line_is_that_in_the_file_also_in_a_later_document_or_a_list(read):
    bad = CONSUMER.replace("maxAttempts: 3", "maxAttempts: 0")
    assert refusal(read, f"{SECRET}---\n{bad}").startswith("consumer.yaml:12: spec.retry.maxAttempts")
    items = "".join(f"  {line}\n" for line in bad.splitlines()).replace("  apiVersion", "- apiVersion", 1)
    assert refusal(read, f"kind: List\nitems:\n{items}").startswith("consumer.yaml:10: spec.retry.maxAttempts")
