"""What is written to the wire by hand is what the client library reads and would write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pika import frame, spec

from redrive.amqp.frames import CannotEncode, encode_ack, encode_publish
from redrive.amqp.wire import from_pika
from redrive.confirms import Outgoing
from redrive.properties import Properties

texts = st.text(st.characters(codec="utf-8"), max_size=30)
headers = st.dictionaries(
    texts, st.one_of(texts, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.none()), max_size=4
)
properties = st.builds(
    Properties,
    headers=headers,
    timestamp=st.none() | st.integers(0, 2**64 - 1),
    **{name: st.none() | st.integers(0, 255) for name in ("delivery_mode", "priority")},
    **{name: st.none() | texts for name in ("content_type", "content_encoding", "correlation_id", "reply_to")},
    **{name: st.none() | texts for name in ("expiration", "message_id", "type", "user_id", "app_id", "cluster_id")},
)


def outgoing(exchange="", routing_key="q", body=b"", sent=None):
    return Outgoing(exchange, routing_key, body, sent or Properties(), lambda _refusal: None)


def read(raw):
    while raw:
        size, one = frame.decode_frame(raw)
        yield one
        raw = raw[size:]


@given(properties, texts, texts, st.binary(max_size=9000))
def test_library_reads_what_was_written(sent, exchange, routing_key, body):
    pieces = encode_publish(3, outgoing(exchange, routing_key, body, sent), 4096)
    method, header, *bodies = read(b"".join(pieces))
    assert {one.channel_number for one in (method, header, *bodies)} == {3}
    publish = method.method
    assert (publish.exchange, publish.routing_key, publish.mandatory) == (exchange, routing_key, True)
    assert (header.body_size, from_pika(header.properties)) == (len(body), sent)
    assert b"".join(one.fragment for one in bodies) == body
    assert all(len(one.marshal()) <= 4096 for one in bodies)


@given(headers)
def test_headers_are_the_bytes_that_the_library_writes(sent):
    theirs = frame.Header(1, 0, spec.BasicProperties(headers=sent or None)).marshal()
    assert b"".join(encode_publish(1, outgoing(sent=Properties(headers=sent)), 4096)).endswith(theirs)


@given(st.integers(1, 65_535), st.integers(0, 2**64 - 1), st.booleans())
def test_acknowledgement_is_the_one_that_the_library_writes(channel, tag, multiple):
    assert encode_ack(channel, tag, multiple=multiple) == frame.Method(channel, spec.Basic.Ack(tag, multiple)).marshal()


def test_frame_of_properties_may_be_as_long_as_was_agreed_and_no_longer():
    def written(length):
        return b"".join(encode_publish(1, outgoing(sent=Properties(headers={"x": "y" * length})), 4096))

    fitting = next(length for length in range(4096, 0, -1) if not _fails(written, length))
    _, header = read(written(fitting))
    assert len(frame.Header(1, 0, header.properties).marshal()) == 4096
    with pytest.raises(CannotEncode, match="4097 bytes, and the broker takes 4096"):
        written(fitting + 1)


def _fails(call, *args):
    try:
        call(*args)
    except CannotEncode:
        return True
    return False


def test_what_cannot_be_written_is_named_by_its_kind_and_never_shown():
    with pytest.raises(CannotEncode) as refused:
        encode_publish(1, outgoing(sent=Properties(correlation_id="secret" * 100)), 4096)
    assert "secret" not in str(refused.value)
