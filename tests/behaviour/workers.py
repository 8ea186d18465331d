"""What a worker that ends, or that died, means to its messages."""

from redrive.outcome import DeadReason


def test_message_of_a_worker_that_died_goes_round_as_a_suspect_and_succeeds_on_its_first_attempt(stage):
    ending = stage.see(stage.send("ok", redelivered=True))
    assert (ending.attempts, ending.letters) == ([1], [])
    [message] = ending.calls
    assert (message.story.suspect, message.redelivered, message.story.crashes) == (True, False, 0)


def test_suspect_that_fails_like_any_other_is_none_any_more(stage):
    ending = stage.see(stage.send("fail", "ok", redelivered=True))
    assert ending.attempts == [1, 2]
    assert [message.story.suspect for message in ending.calls] == [True, False]


def test_nothing_runs_beside_a_suspect(in_place):
    before = [in_place.send("linger") for _ in range(3)]
    suspect = in_place.send("linger", headers={"redrive-suspect": True})
    others = [*before, *(in_place.send("linger") for _ in range(3))]
    for name in (suspect, *others):
        assert in_place.see(name).attempts == [1]
    spans = in_place.spans(suspect, *others)
    began, ended = spans.pop(suspect)
    assert all(end <= began or begin >= ended for begin, end in spans.values())


def test_suspect_that_is_redelivered_has_killed_its_worker_and_is_counted(stage):
    ending = stage.see(stage.send("ok", headers={"redrive-suspect": True}, redelivered=True))
    assert (ending.attempts, ending.letters) == ([1], [])
    assert ending.calls[0].story.crashes == 1


def test_message_that_kills_whoever_runs_it_is_parked_and_its_neighbours_succeed(stage):
    before, killer, after = stage.send("ok"), stage.send("die"), stage.send("ok")
    ending = stage.see(killer)
    assert ending.reason is DeadReason.CRASHED
    assert (ending.letter.story.crashes, ending.letter.story.error_type) == (3, "redrive.Crashed")
    assert set(ending.attempts) == {1}
    assert [stage.see(name).attempts for name in (before, after)] == [[1], [1]]


def test_drain_finishes_what_has_begun_and_gives_back_the_rest_without_a_mark(stage):
    held = stage.send("hold")
    others = [stage.send("ok") for _ in range(3)]
    stage.drain_during(held, gives_back=len(others))
    assert stage.look(held).attempts == [1]
    assert stage.is_over(held)
    assert stage.count_waiting() == 3
    stage.restart()
    for name in others:
        ending = stage.see(name)
        assert ending.attempts == [1]
        [message] = ending.calls
        assert (message.redelivered, message.story.suspect, message.story.crashes) == (False, False, 0)
    assert len(stage.look(held).calls) == 1
