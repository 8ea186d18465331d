"""Of every job it is known who has it: each is received by the child or taken back by the worker, and never by both."""

import errno
import os
import resource
import select
import threading
from contextlib import suppress

import pytest
from process_bed import descriptors

from redrive.runners import channel as channels
from redrive.runners.channel import LARGEST_ANSWER, LARGEST_INLINE, Channel, Inbox, LostFileError

BUFFER = bytearray(LARGEST_ANSWER)


@pytest.fixture
def channel():
    channel = Channel()
    yield channel
    channel.close()


@pytest.fixture
def inbox(channel):
    inbox = Inbox([os.dup(descriptor) for descriptor in channel.theirs])
    yield inbox
    inbox.close()


def test_job_comes_in_its_parts(channel, inbox):
    assert channel.send(7, b"head", b"body")
    assert inbox.receive() == (7, b"head", b"body")


@pytest.mark.parametrize("size", [LARGEST_INLINE - 4, LARGEST_INLINE - 3, 10 * LARGEST_INLINE])
def test_body_of_any_size_comes_whole(channel, inbox, size):
    body = os.urandom(size)
    assert channel.send(1, b"head", body)
    assert inbox.receive() == (1, b"head", body)


def test_answers_are_heard_one_by_one(channel, inbox):
    inbox.answer(1, 0.5, 0, b"")
    inbox.answer(2, 0.5, 1, b"rest")
    assert [channel.hear(BUFFER), channel.hear(BUFFER), channel.hear(BUFFER)] == [17, 21, 0]


def is_ringing(bell):
    return bool(select.select([bell.descriptor], [], [], 0)[0])


def test_answers_are_rung_for_together(channel, inbox, monkeypatch):
    monkeypatch.setattr(channels, "_LONGEST_UNTOLD", 60.0)
    inbox.tell()
    channel.answers.hush()
    for number in range(channels._MOST_UNTOLD - 1):
        inbox.answer(number, 0.5, 0)
    assert not is_ringing(channel.answers)
    inbox.answer(99, 0.5, 0)
    assert is_ringing(channel.answers)
    channel.answers.hush()
    assert not is_ringing(channel.answers)


def test_answer_that_comes_late_is_rung_for_at_once(channel, inbox, monkeypatch):
    monkeypatch.setattr(channels, "_LONGEST_UNTOLD", 0.0)
    inbox.answer(1, 0.5, 0)
    assert is_ringing(channel.answers)


def test_child_with_nothing_to_do_has_rung_for_all_its_answers(channel, inbox, monkeypatch):
    monkeypatch.setattr(channels, "_LONGEST_UNTOLD", 60.0)
    inbox.tell()
    channel.answers.hush()
    inbox.answer(1, 0.5, 0)
    channel.send(2, b"", b"")
    assert inbox.receive() == (2, b"", b"")
    assert not is_ringing(channel.answers)
    child = threading.Thread(target=inbox.receive)
    child.start()
    assert select.select([channel.answers.descriptor], [], [], 20)[0]
    assert channel.hear(BUFFER)
    channel.close()
    child.join(20)
    assert not child.is_alive()


def test_answer_that_was_not_rung_for_is_heard_by_who_listens(channel, inbox, monkeypatch):
    monkeypatch.setattr(channels, "_LONGEST_UNTOLD", 60.0)
    inbox.tell()
    channel.answers.hush()
    inbox.answer(1, 0.5, 0)
    assert not is_ringing(channel.answers)
    assert channel.hear(BUFFER) == 17


def test_child_never_waits_for_room_without_having_rung(channel, inbox, monkeypatch):
    monkeypatch.setattr(channels, "_LONGEST_UNTOLD", 60.0)
    monkeypatch.setattr(channels, "_MOST_UNTOLD", 10_000_000)
    inbox.tell()
    channel.answers.hush()
    count = 2000  # more than there is room for

    def answer():
        for number in range(count):
            inbox.answer(number, 0.5, 1, b"x" * 1024)
        inbox.tell()

    child = threading.Thread(target=answer)
    child.start()
    heard = 0
    while heard < count and select.select([channel.answers.descriptor], [], [], 20)[0]:
        channel.answers.hush()
        while heard < count and channel.hear(BUFFER):
            heard += 1
    child.join(20)
    assert heard == count


def test_what_was_taken_back_is_not_received(channel, inbox):
    for number in range(4):
        channel.send(number, b"", b"body")
    assert inbox.receive()
    assert channel.take_back() == [1, 2, 3]
    channel.send(4, b"", b"")
    assert inbox.receive() == (4, b"", b"")
    assert channel.take_back() == []


def test_large_job_that_is_taken_back_leaves_no_file_open(channel, inbox):
    before = descriptors()
    channel.send(0, b"", b"x" * 10 * LARGEST_INLINE)
    assert channel.take_back() == [0]
    assert descriptors() == before


def test_file_that_a_process_may_not_have_is_said_to_be_lost(channel, inbox):
    channel.send(7, b"", b"x" * 10 * LARGEST_INLINE)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(LostFileError) as lost:
            inbox.receive()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert lost.value.number == 7


@pytest.fixture
def refuse_files(monkeypatch):
    def refuse(number):
        def fail(_):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "memfd_create", fail)

    return refuse


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ETOOMANYREFS])
def test_file_that_there_is_no_room_for_now_may_be_sent_later(channel, refuse_files, number):
    refuse_files(number)
    assert not channel.send(0, b"", b"x" * 10 * LARGEST_INLINE)


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS, errno.EFBIG])
def test_file_that_can_never_be_made_is_not_waited_for(channel, refuse_files, number):
    refuse_files(number)
    with pytest.raises(OSError, match=os.strerror(number)):
        channel.send(0, b"", b"x" * 10 * LARGEST_INLINE)


def test_worker_never_waits_for_a_child_that_receives_nothing(channel):
    sent = 0
    while channel.send(sent, b"", b"x" * 1024):
        sent += 1
    assert sent >= 64
    assert channel.take_back() == list(range(sent))


@pytest.mark.parametrize("free", range(4))
def test_channel_that_cannot_be_made_for_want_of_files_leaves_none_open(free):
    before = descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, before)) + 10, hard))
    filling = []
    try:
        with suppress(OSError):
            while True:
                filling.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(free):
            os.close(filling.pop())
        with pytest.raises(OSError, match="Too many open files"):
            Channel()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in filling:
            os.close(descriptor)
    assert descriptors() == before


def test_only_the_job_that_is_named_is_condemned(channel, inbox):
    channel.condemn(7)
    assert inbox.is_condemned(7)
    assert inbox.is_condemned(7)
    assert not inbox.is_condemned(8)


def test_job_is_not_condemned_by_another_that_waits(channel, inbox):
    assert not inbox.is_condemned(7)
    channel.send(7, b"", b"")
    assert not inbox.is_condemned(7)
    assert inbox.receive() == (7, b"", b"")


def test_condemning_that_comes_too_late_is_no_job(channel, inbox):
    channel.condemn(7)
    channel.send(8, b"", b"")
    assert inbox.receive() == (8, b"", b"")
    channel.condemn(8)
    assert channel.take_back() == []


def test_connection_that_the_child_has_shut_down_is_not_waited_for(channel, inbox):
    inbox._socket.shutdown(2)
    with pytest.raises(ConnectionError):
        channel.hear(BUFFER)
    with pytest.raises(ConnectionError):
        channel.send(0, b"", b"")
    assert channel.take_back() == []


def test_closing_is_leave_to_go(channel, inbox):
    channel.close()
    assert inbox.receive() is None


def test_each_job_is_had_by_exactly_one_whoever_is_faster(channel, inbox):
    received, taken, count = [], [], 3000

    def receive():
        while order := inbox.receive():
            received.append(order[0])

    child = threading.Thread(target=receive)
    child.start()
    for number in range(count):
        while not channel.send(number, b"", b"x"):
            taken += channel.take_back()
        channel.jobs.ring()
        if number % 7 == 0:
            taken += channel.take_back()
    taken += channel.take_back()
    channel.close()
    child.join(20)
    assert sorted(received + taken) == list(range(count))
    assert received == sorted(received)
