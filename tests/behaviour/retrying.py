"""How a message is retried."""

from datetime import timedelta

from redrive.outcome import DeadReason

FIXED = timedelta(milliseconds=250)
SLOW = timedelta(milliseconds=500)
LONGEST = timedelta(seconds=1)


def check_pause(stage, ending, pause):
    """See that the second call came no earlier than decided; in virtual time, not later either."""
    first, second = ending.calls[:2]
    assert second.received_at >= second.story.due_at
    slept = second.story.due_at - first.received_at
    assert slept == pause if stage.is_exact else slept >= pause - timedelta(milliseconds=1)  # written in milliseconds
    if stage.is_exact:
        assert second.received_at == second.story.due_at


def test_message_that_succeeds_is_run_once(stage):
    ending = stage.see(stage.send("ok"))
    assert (ending.attempts, ending.letters) == ([1], [])


def test_message_that_fails_twice_succeeds_on_its_third_attempt(stage):
    ending = stage.see(stage.send("fail", "fail", "ok"))
    assert (ending.attempts, ending.letters) == ([1, 2, 3], [])
    assert [message.max_attempts for message in ending.calls] == [3, 3, 3]


def test_retry_comes_no_earlier_than_its_delay(stage):
    ending = stage.see(stage.send("fail", "fail", "ok"))
    check_pause(stage, ending, FIXED)


def test_delay_that_a_handler_asks_for_is_cut_to_the_longest(stage):
    ending = stage.see(stage.send("retry-late", "ok"))
    assert ending.attempts == [1, 2]
    check_pause(stage, ending, LONGEST)
    assert ending.calls[1].story.due_at - ending.calls[0].received_at < timedelta(minutes=10)


def test_rule_gives_its_failures_a_delay_of_their_own(stage):
    ending = stage.see(stage.send("busy", "ok"))
    assert ending.attempts == [1, 2]
    check_pause(stage, ending, SLOW)


def test_snooze_keeps_the_attempt_and_is_counted(stage):
    ending = stage.see(stage.send("snooze", "snooze", "fail", "ok"))
    assert ending.attempts == [1, 1, 1, 2]
    assert [message.story.snoozes for message in ending.calls] == [0, 1, 2, 2]
    check_pause(stage, ending, FIXED)


def test_retry_tells_what_went_wrong_before(stage):
    ending = stage.see(stage.send("fail", "ok"))
    story = ending.calls[1].story
    assert (story.error_type, story.error) == ("errands.Broken", "no answer from 10.0.0.7")
    assert story.first_attempt_at == ending.calls[0].received_at.replace(
        microsecond=ending.calls[0].received_at.microsecond // 1000 * 1000
    )


def test_message_that_fails_is_tried_in_place_inside_of_one_attempt(in_place):
    ending = in_place.see(in_place.send("fail", "fail", "fail", "fail", "ok"))
    assert (ending.attempts, ending.letters) == ([1, 1, 1, 2, 2], [])
    assert [message.redelivered for message in ending.calls] == [False] * 5


def test_what_a_rule_parks_is_not_tried_in_place(in_place):
    ending = in_place.see(in_place.send("decline"))
    assert (ending.attempts, ending.reason) == ([1], DeadReason.REJECTED)


def test_sleeping_message_holds_up_no_other(stage):
    slow = stage.send("snooze-long", "ok")
    fast = stage.send("ok")
    stage.see(slow)
    order = [line["name"] for line in stage.journal() if "message" in line and line["name"] in (slow, fast)]
    assert order == [slow, fast, slow]


def test_message_that_sleeps_while_its_worker_is_replaced_goes_on(stage):
    name = stage.send("snooze-long", "ok")
    other = stage.send("ok")
    stage.see(other)
    stage.restart()
    ending = stage.see(name)
    assert ending.attempts == [1, 1]
    assert not ending.calls[1].story.suspect


def test_equal_ids_with_other_bodies_are_both_handled(stage):
    first = stage.send("ok", properties={"message_id": "the same"})
    second = stage.send("ok", headers={"other": True}, properties={"message_id": "the same"})
    assert [stage.see(name).attempts for name in (first, second)] == [[1], [1]]
    assert {stage.see(name).calls[0].id for name in (first, second)} == {"the same"}
