"""What is read from the wire by hand is what the client library reads, however it is cut into pieces."""

import pika
from hypothesis import given
from hypothesis import strategies as st
from pika import frame, spec
from pika.channel import ContentFrameAssembler

from redrive.amqp.intake import Intake
from redrive.amqp.wire import read_delivery
from redrive.content_header import read_content_header

texts = st.text(max_size=20).filter(lambda text: len(text.encode()) < 250)
shorts = st.one_of(texts, st.binary(max_size=30))
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), texts, st.binary(max_size=9), st.floats(-9, 9)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
properties = st.builds(
    pika.BasicProperties,
    headers=st.none() | st.dictionaries(texts, values, max_size=4),
    **{name: st.none() | st.integers(0, 255) for name in ("delivery_mode", "priority")},
    timestamp=st.none() | st.integers(0, 2**64 - 1),
    **{
        name: st.none() | shorts
        for name in ("content_type", "content_encoding", "correlation_id", "reply_to", "expiration", "message_id")
    },
    **{name: st.none() | shorts for name in ("type", "user_id", "app_id", "cluster_id")},
)
delivers = st.builds(
    spec.Basic.Deliver,
    consumer_tag=texts,
    delivery_tag=st.integers(0, 2**64 - 1),
    redelivered=st.booleans(),
    exchange=shorts,
    routing_key=shorts,
)
OTHERS = [frame.Heartbeat(), frame.Method(1, spec.Basic.ConsumeOk("tag")), frame.Method(7, spec.Channel.CloseOk())]


@st.composite
def messages(draw, channel=1):
    """Give the frames of one delivery, with a body in some pieces."""
    parts = draw(st.lists(st.binary(min_size=1, max_size=50), max_size=3))
    header = frame.Header(channel, sum(map(len, parts)), draw(properties))
    return [frame.Method(channel, draw(delivers)), header, *(frame.Body(channel, part) for part in parts)]


def cut(stream, sizes):
    """Cut a stream into pieces of these sizes, again and again."""
    while stream:
        for size in sizes:
            yield stream[:size]
            stream = stream[size:]


def read_by_library(frames):
    assembler = ContentFrameAssembler()
    for one in frames:
        _, decoded = frame.decode_frame(one.marshal())
        content = assembler.process(decoded)
        if content:
            method, header, body = content
            yield read_delivery(method.method, header.properties, body)


def feed(intake, pieces):
    left = b""
    for piece in pieces:
        buffer = left + piece
        left = buffer[intake.read(buffer) :]
    assert left == b""


@given(st.lists(messages(), max_size=4), st.lists(st.integers(1, 400), min_size=1, max_size=5), st.data())
def test_deliveries_are_those_that_the_library_reads(several, sizes, data):
    frames = []
    for message in several:
        frames += data.draw(st.lists(st.sampled_from(OTHERS), max_size=2))
        frames += message
    came, others = [], []
    intake = Intake(others.append)
    intake.takers[1] = came.append
    feed(intake, cut(b"".join(one.marshal() for one in frames), sizes))
    assert came == list(read_by_library([one for message in several for one in message]))
    assert others == [one.marshal() for one in frames if one in OTHERS]


@given(messages(1), messages(2), st.data())
def test_deliveries_of_two_channels_are_told_apart_however_their_frames_are_mixed(one, two, data):
    mixed, left = [], {1: list(one), 2: list(two)}
    while any(left.values()):
        channel = data.draw(st.sampled_from([number for number, frames in left.items() if frames]))
        mixed.append(left[channel].pop(0))
    came = {1: [], 2: []}
    intake = Intake(lambda _frame: None)
    intake.takers.update({1: came[1].append, 2: came[2].append})
    feed(intake, [b"".join(each.marshal() for each in mixed)])
    assert came == {1: list(read_by_library(one)), 2: list(read_by_library(two))}


@given(messages(), st.lists(st.integers(1, 400), min_size=1, max_size=5))
def test_worker_has_the_properties_also_as_they_came(message, sizes):
    came = []
    intake = Intake(lambda _frame: None)
    intake.takers[1] = came.append
    intake.keeps_headers = True
    feed(intake, cut(b"".join(one.marshal() for one in message), sizes))
    (delivery,) = came
    assert read_content_header(delivery.header, 0) == (delivery.properties, len(delivery.body))


def test_channel_without_a_taker_is_left_to_the_library():
    frames = [frame.Method(2, spec.Basic.Return(312, "NO_ROUTE", "", "q")), frame.Header(2, 1, pika.BasicProperties())]
    frames.append(frame.Body(2, b"x"))
    others = []
    intake = Intake(others.append)
    intake.takers[2] = others.append
    intake.forget(2)
    feed(intake, [b"".join(one.marshal() for one in frames)])
    assert others == [one.marshal() for one in frames]


confirms = st.builds(
    lambda kind, number, multiple: frame.Method(3, kind(number, multiple)),
    st.sampled_from([spec.Basic.Ack, spec.Basic.Nack]),
    st.integers(0, 2**64 - 1),
    st.booleans(),
)


@given(st.lists(confirms | st.sampled_from(OTHERS), max_size=9), st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_confirms_are_those_that_the_library_reads(frames, sizes):
    came, others = [], []
    intake = Intake(others.append)
    intake.hearers[3] = lambda *confirm: came.append(confirm)
    feed(intake, cut(b"".join(one.marshal() for one in frames), sizes))
    methods = [frame.decode_frame(one.marshal())[1].method for one in frames if one not in OTHERS]
    assert came == [(one.delivery_tag, one.multiple, isinstance(one, spec.Basic.Ack)) for one in methods]
    assert others == [one.marshal() for one in frames if one in OTHERS]


def test_confirms_of_a_closed_channel_are_left_to_the_library():
    confirm = frame.Method(3, spec.Basic.Ack(1)).marshal()
    others = []
    intake = Intake(others.append)
    intake.hearers[3] = lambda *_: others.append("heard")
    intake.forget(3)
    feed(intake, [confirm])
    assert others == [confirm]
