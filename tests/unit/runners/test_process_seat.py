"""What one child is sent and answers, and who gets a job: whatever a handler writes, and whatever has no room."""

import os
from collections import deque

import pytest
from process_bed import make_job

from redrive.outcome import Succeeded
from redrive.runners.channel import ANSWER, LARGEST_JOB
from redrive.runners.crew import Crew
from redrive.runners.parcel import SUCCEEDED
from redrive.runners.seat import Seat


@pytest.fixture
def make_seat():
    seats = []

    def make(*jobs):
        seat = Seat(len(seats), runs=1000)
        seats.append(seat)
        for job in jobs:
            assert seat.send(job, b"", 0.0)
        return seat

    yield make
    for seat in seats:
        seat.channel.close()


def answer(seat, number, *, seconds=0.5):
    os.write(seat.channel.far.fileno(), ANSWER.pack(number, seconds, SUCCEEDED))


def test_less_than_an_answer_is_not_taken_for_one_with_the_rest_of_the_answer_before(make_seat):
    """The handler of job 10 writes a line break, 0x0a, into a descriptor that is not its own."""
    seat = make_seat(*[make_job("any") for _ in range(11)])
    for number in range(10):
        answer(seat, number)
    assert {ended.result for ended in seat.hear(1.0)} == {Succeeded()}
    os.write(seat.channel.far.fileno(), b"\n")
    assert seat.hear(2.0) == []
    assert seat.garbled
    assert list(seat.jobs) == [10]


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), float("-inf"), -1.0])
def test_time_that_nothing_can_take_is_no_answer(make_seat, seconds):
    seat = make_seat(make_job("any"))
    answer(seat, 0, seconds=seconds)
    assert seat.hear(1.0) == []
    assert seat.garbled


def test_time_of_a_job_that_begins_when_those_before_it_are_taken_back_begins_then(make_seat, monkeypatch):
    first, second, third = (make_job("any") for _ in range(3))
    seat = make_seat(first, second, third)

    def race():
        """Take the first back, and the third; the child is quicker to receive the second."""
        yield 0
        seat.channel.far.recv(LARGEST_JOB)
        yield 2

    monkeypatch.setattr(type(seat.channel), "take_back", lambda _: list(race()))
    assert seat.take_back(9.0) == [first, third]
    assert (list(seat.jobs.values()), seat.began) == ([second], 9.0)


def test_time_of_a_job_that_runs_goes_on_when_those_behind_it_are_taken_back(make_seat):
    first, second = make_job("any"), make_job("any")
    seat = make_seat(first, second)
    seat.channel.far.recv(LARGEST_JOB)
    assert seat.take_back(9.0) == [second]
    assert (list(seat.jobs.values()), seat.began) == ([first], 0.0)


def test_child_that_is_idle_has_no_job_though_there_was_no_room_for_one_in_another(make_seat, monkeypatch):
    crew = Crew()
    crew.tempo.depth = 8
    for seat in (make_seat(), make_seat()):
        crew.join(seat, 0.0)
    rooms = deque([False, True])
    send = Seat.send
    monkeypatch.setattr(Seat, "send", lambda *words: rooms.popleft() and send(*words))
    crew.put([make_job("any")], 0.0)
    assert crew.has_idle
    assert [len(seat.jobs) for seat in crew._idle] == [0, 0]
    assert len(crew.waiting) == 1
    crew.spread(0.0)
    assert [len(seat.jobs) for seat in crew._idle] == [0]
    assert not crew.waiting
