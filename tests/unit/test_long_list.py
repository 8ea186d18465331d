"""Lists of the management API, read as they come: whole where they are honest, and cut off where they would fill us."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.answers import QUEUE_COLUMNS
from redrive.errors import BadAnswer
from redrive.long_list import LONGEST_ITEM, Allowance, read_items
from redrive.topology import Wanted, work_queue

SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8)
OBJECTS = st.dictionaries(st.text(max_size=5), SCALARS | st.lists(SCALARS, max_size=3), max_size=4)


def read(raw, allowance=None, *, at_a_time=None):
    source = io.BytesIO(raw)
    take = source.read if at_a_time is None else lambda _size: source.read(at_a_time)
    return list(read_items(take, allowance or Allowance()))


@given(st.lists(OBJECTS, max_size=4), st.sampled_from([None, 1, " "]), st.booleans(), st.integers(1, 9))
def test_list_is_read_as_it_was_written_however_it_comes(items, indent, ascii_only, at_a_time):
    raw = json.dumps(items, indent=indent, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    try:
        raw.decode()
    except UnicodeDecodeError:
        return
    assert read(raw, at_a_time=at_a_time) == items


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"{}",
        b"404 page not found",
        b"[",
        b"[1]",
        b"[{}",
        b"[{},",
        b"[{},]",
        b"[{} {}]",
        b'[{"a"}]',
        b"[[]]",
        b'[{"a":"\xff"}]',
        b'[{"a":"\xe6\x97',
        b'[{"a":' + b"[" * 100_000,
    ],
)
def test_what_is_no_list_of_objects_is_a_bad_answer(raw):
    with pytest.raises(BadAnswer):
        read(raw)


def test_item_that_is_too_long_is_a_bad_answer():
    long = b'[{"a":[' + b"{}," * LONGEST_ITEM + b"{}]}]"
    with pytest.raises(BadAnswer, match="no object"):
        read(long)


def test_answer_is_not_taken_further_than_its_first_fault():
    source = io.BytesIO(b"[1," + b"{}," * 1_000_000)
    with pytest.raises(BadAnswer):
        list(read_items(source.read, Allowance()))
    assert source.tell() < 100_000


@pytest.mark.parametrize("allowance", [Allowance(most_bytes=100_000), Allowance(most_values=1000)])
def test_lists_of_one_reading_share_an_allowance(allowance):
    some = json.dumps([{"name": f"q{number}", "type": "quorum"} for number in range(300)]).encode()
    read(some, allowance)
    with pytest.raises(BadAnswer, match="divide it among several"):
        for _ in range(9):
            read(some, allowance)


def test_a_vhost_of_nineteen_thousand_queues_with_their_replicas_and_bindings_is_read():
    replicas = [f"rabbit@rabbitmq-server-{number}.rabbitmq-nodes" for number in range(3)]
    queue = {
        "arguments": dict(work_queue(Wanted("shop/orders", "q", None)).arguments),
        "auto_delete": False,
        "consumers": 1,
        "durable": True,
        "effective_policy_definition": {"message-ttl": 1},
        "exclusive": False,
        "leader": replicas[0],
        "members": replicas,
        "message_stats": {"ack": 1, "deliver_get": 1, "publish": 1},
        "messages_ready": 1,
        "messages_unacknowledged": 1,
        "online": replicas,
        "type": "quorum",
    }
    assert {column.partition(".")[0] for column in QUEUE_COLUMNS} == {*queue, "name"}
    names = [f"team-{number}.orders" for number in range(19_000)]
    bindings = [
        {
            "source": source,
            "destination": name,
            "destination_type": "queue",
            "routing_key": f"shop/{name}",
            "arguments": {},
        }
        for source in ("redrive.delivery", "shop.events")
        for name in names
    ]
    allowance = Allowance()
    assert len(read(json.dumps([{"name": name, **queue} for name in names]).encode(), allowance)) == 19_000
    assert len(read(json.dumps(bindings).encode(), allowance)) == 38_000


def test_what_stays_of_an_answer_is_counted_however_its_values_are_divided():
    many = ({f"a{number}-{at}": at for at in range(1000)} for number in range(700))
    with pytest.raises(BadAnswer, match="divide it among several"):
        read(json.dumps([{"name": "q", "arguments": arguments} for arguments in many]).encode())
    with pytest.raises(BadAnswer, match="divide it among several"):
        read(json.dumps([{"name": "q"}] * 200_001).encode())
