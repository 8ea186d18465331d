"""What becomes of a message in a worker, on a broker in memory."""

import pytest
from samples import worker_config

from redrive.letter import read_death
from redrive.outcome import Crashed, DeadReason, Rejected, Snoozed, Succeeded
from redrive.properties import Properties
from redrive.runtime.ports import Refusal
from redrive.runtime.settling import BATCH
from redrive.story import read_story
from redrive.testing.vhost import Stored

from .stage import FAILED, Stage, make_stored

KILLED = Crashed("the process was ended by SIGKILL", alone=True)


@pytest.fixture
def stage():
    return Stage()


def test_message_that_succeeds_is_acknowledged(stage):
    stage.publish("a")
    stage.succeed()
    assert (stage.unacked, stage.waiting, stage.vhost.sleeping) == ([], [], 0)
    assert stage.notes.of("settled") == [["a", "Done"]]


def test_no_more_run_at_once_than_the_concurrency(stage):
    stage.publish("a", "b", "c", "d")
    assert stage.runner.running_ids() == ["a", "b"]


def test_message_that_fails_sleeps_in_the_ladder_and_comes_back_on_its_second_attempt(stage):
    stage.publish("a")
    stage.fail()
    assert (stage.unacked, stage.vhost.sleeping) == ([], 1)
    stage.loop.advance(1.97)
    assert stage.runner.running_ids() == []
    stage.loop.advance(0.1)
    [(_, attempt, alone, _)] = stage.runner.began[1:]
    assert (attempt, alone) == (2, False)


def test_message_is_dead_lettered_after_its_last_attempt(stage):
    stage.publish("a")
    for _ in range(3):
        stage.fail()
        stage.loop.advance(2.1)
    [(name, headers)] = stage.dead
    assert (name, read_story(headers).attempt, read_death(headers).reason) == ("a", 3, DeadReason.EXHAUSTED)
    assert (stage.unacked, stage.waiting, stage.vhost.sleeping) == ([], [], 0)


def test_rejected_message_is_parked_at_once(stage):
    stage.publish("a")
    stage.end(Rejected("never"))
    assert read_death(stage.dead[0][1]).reason is DeadReason.REJECTED


def test_snoozed_message_comes_back_on_the_same_attempt(stage):
    stage.publish("a")
    stage.end(Snoozed())
    stage.loop.advance(2.1)
    assert [attempt for _, attempt, _, _ in stage.runner.began] == [1, 1]


def test_expired_message_is_parked_without_a_run(stage):
    stage.publish("a", redrive_attempt=2, redrive_expires_at="2020-01-01T00:00:00.000Z")
    assert stage.runner.began == []
    assert read_death(stage.dead[0][1]).reason is DeadReason.EXPIRED


def test_failing_message_is_tried_in_place_as_often_as_the_policy_says():
    stage = Stage(worker_config(tries=3))
    stage.publish("a")
    for _ in range(2):
        stage.fail()
        assert stage.unacked == ["a"]
        stage.loop.advance(25)
    stage.fail()
    assert stage.vhost.sleeping == 1
    assert [attempt for _, attempt, _, _ in stage.runner.began] == [1, 1, 1]


# What the broker refuses.


def test_refused_retry_stays_unacknowledged_and_is_sent_when_the_broker_takes_it(stage):
    stage.vhost.refusing = Refusal("no queue is bound for it")
    stage.publish("a")
    stage.fail()
    stage.loop.advance(60)
    assert (stage.unacked, stage.vhost.sleeping) == (["a"], 0)
    assert len(stage.notes.of("refused")) > 2
    stage.vhost.refusing = None
    stage.loop.advance(40)
    assert [attempt for _, attempt, _, _ in stage.runner.began] == [1, 2]


def test_refused_message_holds_up_no_other(stage):
    stage.vhost.refusing = Refusal("no queue is bound for it")
    stage.publish("a", "b")
    stage.fail("a")
    stage.succeed("b")
    assert stage.unacked == ["a"]


def test_message_that_the_broker_will_never_take_is_left_to_its_queue(stage):
    stage.vhost.refusing = Refusal("too large", hopeless=True)
    stage.publish("a")
    stage.fail()
    assert ([name for name, _ in stage.dead], stage.unacked) == (["a"], [])
    assert stage.notes.of("settled") == [["a", "DeadLetter"]]


def test_message_that_the_broker_will_never_take_is_kept_where_its_queue_would_lose_it():
    stage = Stage(worker_config(queue_parks=False))
    stage.vhost.refusing = Refusal("too large", hopeless=True)
    stage.publish("a")
    stage.fail()
    assert (stage.dead, stage.unacked) == ([], ["a"])


def test_retry_waits_for_a_publishing_connection_that_is_gone(stage):
    stage.publisher.connected = False
    stage.publish("a")
    stage.fail()
    stage.loop.advance(100)
    assert stage.unacked == ["a"]
    stage.publisher.connect()
    stage.loop.settle()
    assert (stage.unacked, stage.vhost.sleeping) == ([], 1)


# Acknowledging.


def test_later_message_is_acknowledged_while_an_earlier_one_still_runs(stage):
    stage.publish("slow", "fast")
    stage.succeed("fast")
    assert stage.unacked == ["slow"]
    stage.break_connection()
    assert stage.waiting == ["slow"]


def test_acknowledgement_waits_for_the_confirm_of_the_retry(stage):
    stage.publish("a", "b")
    stage.publisher.connected = False
    stage.fail("a")
    stage.succeed("b")
    stage.loop.advance(1)
    assert stage.unacked == ["a"]


@pytest.fixture
def wide():
    """Give a stage whose worker holds enough for acknowledgements to wait for each other as long as they ever do."""
    stage = Stage(worker_config(concurrency=4 * BATCH))
    stage.meet_first()
    stage.publish(*(f"m{number}" for number in range(4 * BATCH)))
    return stage


def count_unheard(stage):
    """Say of how many that are done the broker has not heard, without letting time pass."""
    return len(stage.consumer.session.unacked) - len(stage.runner.running)


def test_what_is_done_is_acknowledged_before_it_is_much_though_no_time_passes(wide):
    unheard = []
    for number in range(BATCH + 1):
        wide.succeed(f"m{number}")
        unheard.append(count_unheard(wide))
    assert max(unheard) == BATCH - 1


def test_what_is_done_behind_one_that_still_runs_is_acknowledged_before_it_is_much_though_no_time_passes(wide):
    """Beside one batch, half as many may wait as are held ahead of the handlers, who have as many ahead as run."""
    unheard = []
    for number in range(1, 4 * BATCH - 1):
        wide.succeed(f"m{number}")
        unheard.append(count_unheard(wide))
    assert max(unheard) < BATCH + 4 * BATCH // 2


# Connections that break.


def test_what_had_not_begun_when_the_connection_broke_runs_afterwards_as_nobodys_suspect(stage):
    stage.publish("a", "b", "c", "d")
    stage.break_connection()
    stage.succeed("a", "b")
    stage.connect()
    stage.loop.settle()
    assert [(name, alone) for name, _, alone, _ in stage.runner.began[2:]] == [("c", False), ("d", False)]


def test_what_was_running_when_the_connection_broke_is_not_run_again(stage):
    stage.publish("a")
    stage.break_connection()
    stage.connect()
    stage.succeed("a")
    assert (stage.unacked, stage.waiting) == ([], [])
    assert len(stage.runner.began) == 1


def test_what_ended_while_there_was_no_connection_is_settled_by_its_result(stage):
    stage.publish("a", "b")
    stage.break_connection()
    stage.succeed("a")
    stage.fail("b")
    assert stage.vhost.sleeping == 0  # the broker still has it: it would be there twice
    stage.connect()
    assert (stage.unacked, stage.vhost.sleeping) == ([], 1)
    assert len(stage.runner.began) == 2


def test_retry_that_was_confirmed_while_the_delivery_was_gone_is_not_sent_twice(stage):
    stage.publish("a")
    stage.publisher.connected = False
    stage.fail()
    stage.break_connection()
    stage.publisher.connect()
    stage.loop.settle()
    stage.connect()
    assert (stage.unacked, stage.waiting, stage.vhost.sleeping) == ([], [], 1)


def test_acknowledgement_that_broke_with_the_connection_is_made_up_for(stage):
    stage.publish("a", "b")
    stage.runner.end(Succeeded(), "a")
    stage.break_connection()  # before the acknowledgements that wait are sent
    stage.connect()
    stage.succeed("b")
    assert (stage.unacked, stage.waiting) == ([], [])
    assert [name for name, *_ in stage.runner.began] == ["a", "b"]


def test_acknowledgement_that_was_held_back_when_the_connection_broke_is_made_up_for(stage):
    stage.publish("a", "b")
    stage.vhost.arrive(make_stored("odd", redrive_suspect=True))
    while stage.consumer.session.hold is None:
        stage.loop.turn()
    stage.runner.end(Succeeded(), "a")
    stage.runtime.flush()
    stage.break_connection()
    stage.connect()
    for _ in range(4):
        stage.succeed()
        stage.loop.advance(3)
    assert [name for name, *_ in stage.runner.began] == ["a", "b", "odd"]


def test_equal_ids_with_other_bodies_are_other_messages(stage):
    stage.publish("a")
    stage.break_connection()
    [stored] = stage.vhost.ready
    stage.vhost.ready[0] = type(stored)("", "orders", b"other", stored.properties, redelivered=True)
    stage.connect()
    stage.succeed("a")
    assert len(stage.notes.of("settled")) == 1
    assert stage.notes.of("settled")[0][1] == "Suspect"


def test_equal_message_that_comes_much_later_was_published_again_and_is_run_again(stage):
    stage.publish("a")
    stage.break_connection()
    stage.succeed("a")
    stage.vhost.ready.clear()  # another worker had it
    stage.connect()
    stage.loop.advance(400)
    stage.publish("a", redelivered=True)
    assert stage.runner.running_ids() == ["a"]


def test_what_we_had_is_known_again_after_an_outage_of_any_length(stage):
    stage.publish("a")
    stage.break_connection()
    stage.succeed("a")
    stage.loop.advance(3600)
    stage.connect()
    assert (stage.unacked, len(stage.runner.began)) == ([], 1)


# Consumers that the broker ends.


def test_what_was_held_of_a_deleted_queue_is_run_and_sent_on(stage):
    stage.publish("a", "b", "c", "d")
    stage.cancel(takes_back=False)
    stage.succeed("a")
    stage.fail("b")
    stage.connect()
    stage.succeed("c", "d")
    stage.loop.advance(3)
    stage.succeed("b")
    assert [name for name, kind in stage.notes.of("settled") if kind == "Done"] == ["a", "c", "d", "b"]
    assert len(stage.runner.began) == 5


def test_what_the_broker_took_back_from_a_slow_consumer_is_not_run_twice(stage):
    stage.publish("a", "b", "c", "d")
    stage.cancel(takes_back=True)
    stage.succeed("a")
    stage.connect()
    for _ in range(3):
        stage.succeed()
    assert (stage.unacked, stage.waiting) == ([], [])
    assert len(stage.runner.began) == 4
    assert stage.dead == []


def test_session_that_the_broker_cancelled_is_closed_when_all_of_it_is_settled(stage):
    stage.publish("a")
    session = stage.consumer.session
    stage.cancel(takes_back=False)
    assert session.is_open
    stage.succeed("a")
    stage.loop.advance(1)
    assert not session.is_open


def test_what_a_deleted_queue_left_us_survives_a_connection_that_breaks_too(stage):
    stage.publish("a", "b", "c", "d")
    session = stage.consumer.session
    stage.cancel(takes_back=False)
    stage.runtime.lost(session, "the connection broke")
    stage.connect()
    stage.fail("a")
    stage.succeed("b")
    stage.succeed("c", "d")
    stage.loop.advance(3)
    stage.succeed("a")
    assert sorted(name for name, kind in stage.notes.of("settled") if kind == "Done") == ["a", "b", "c", "d"]


def test_message_that_only_its_deleted_queue_could_have_parked_is_parked_without_its_largest_headers(stage):
    stage.publish("a", blob="x" * 131_000)
    stage.cancel(takes_back=False)
    stage.fail("a")
    [(name, headers)] = stage.dead
    assert (name, headers["redrive-dropped"]) == ("a", "blob")


# Stopping.


def test_drained_worker_finishes_what_has_begun_and_gives_back_the_rest_unmarked(stage):
    stage.publish("a", "b", "c", "d")
    stage.drain()
    assert stage.exit_codes == []
    assert stage.waiting == ["c", "d"]
    stage.succeed("a", "b")
    assert stage.exit_codes == [0]
    assert stage.waiting == ["c", "d"]
    assert all((story.attempt, story.suspect) == (1, False) for story in stage.stories().values())
    assert not any(stored.redelivered for stored in stage.vhost.ready)


def test_drained_worker_sends_on_what_fails(stage):
    stage.publish("a")
    stage.drain()
    stage.fail()
    assert (stage.exit_codes, stage.vhost.sleeping, stage.waiting) == ([0], 1, [])


def test_drained_worker_tries_nothing_in_place_again():
    stage = Stage(worker_config(tries=5))
    stage.publish("a", "b")
    stage.fail("a")
    stage.drain()
    stage.fail("b")
    assert (stage.exit_codes, stage.vhost.sleeping) == ([0], 2)


def test_drained_worker_does_not_wait_for_a_broker_that_is_gone(stage):
    stage.publish("a", "b")
    stage.publisher.connected = False
    stage.fail("a")
    stage.break_connection()
    stage.drain()
    stage.succeed("b")
    assert stage.exit_codes == []
    stage.loop.advance(60)
    assert stage.exit_codes == [0]
    assert sorted(stage.waiting) == ["a", "b"]


def test_runner_that_must_be_replaced_ends_the_worker_with_1(stage):
    stage.publish("a", "b", "c")
    stage.runner.fail("the handler does not end")
    stage.loop.settle()
    stage.succeed()
    assert stage.exit_codes == [1]
    assert stage.waiting == ["c"]


def test_idle_worker_stops_at_once(stage):
    stage.drain()
    assert stage.exit_codes == [0]
    assert stage.runner.is_stopped


def test_drained_worker_counts_the_last_failure_of_what_waits_for_another_try():
    stage = Stage(worker_config(concurrency=1, tries=3))
    stage.publish("first")
    stage.loop.advance(10)
    stage.succeed("first")  # now it holds one ahead
    stage.publish("a", "b")
    stage.fail("a")
    stage.loop.advance(10)  # its second try waits behind the other
    assert stage.runner.running_ids() == ["b"]
    stage.drain()
    stage.succeed("b")
    assert (stage.exit_codes, stage.vhost.sleeping) == ([0], 1)


def test_message_that_cannot_be_given_back_is_left_in_its_place(stage):
    stage.publish("a", "b", "c")
    stage.vhost.refusing = Refusal("too large", hopeless=True)
    stage.drain()
    stage.succeed()
    assert (stage.waiting, stage.dead, stage.exit_codes) == (["c"], [], [0])


# Suspects.


def test_redelivered_message_goes_round_as_a_suspect_and_then_runs_alone(stage):
    stage.publish("a", "b")
    stage.publish("odd", redelivered=True)
    assert [began[0] for began in stage.runner.began] == ["a", "b"]
    stage.succeed("a")
    assert stage.runner.running_ids() == ["b"]
    stage.succeed("b")
    assert stage.runner.began[-1] == ("odd", 1, True, ("odd",))
    stage.succeed("odd")
    assert (stage.unacked, stage.waiting, stage.dead) == ([], [], [])


def test_nothing_begins_beside_a_suspect_and_everything_afterwards(stage):
    stage.publish("odd", redrive_suspect=True)
    stage.publish("a", "b")
    assert stage.runner.running_ids() == ["odd"]
    stage.succeed("odd")
    stage.succeed("a")
    assert [name for name, *_ in stage.runner.began] == ["odd", "a", "b"]


def test_what_was_taken_before_a_suspect_and_has_not_begun_waits_for_it(stage):
    stage.publish("a", "b", "c")
    stage.publish("odd", redrive_suspect=True)
    stage.succeed("a", "b")
    assert stage.runner.running_ids() == ["odd"]
    stage.succeed("odd")
    assert stage.runner.running_ids() == ["c"]


def test_second_suspect_is_not_kept_beside_the_first(stage):
    stage.meet_first()
    stage.publish("odd", "odder", redrive_suspect=True)
    assert stage.runner.running_ids() == ["odd"]
    assert stage.unacked == ["odd"]
    assert stage.stories()["odder"].suspect
    assert not stage.vhost.ready[0].redelivered
    stage.succeed("odd")
    assert stage.runner.running_ids() == ["odder"]


def test_suspect_that_killed_its_worker_is_counted_and_its_neighbours_are_not():
    stage = Stage(worker_config(concurrency=4))
    stage.publish("killer", "a", "b", "c")
    crashes = 0
    while not stage.dead:
        running = stage.runner.running_ids()
        if "killer" in running:
            stage.kill()
            stage.start()
            crashes += 1
            assert crashes < 10
        elif running:
            stage.succeed()
        else:
            stage.loop.advance(0.5)
    stage.loop.advance(10)
    stage.succeed()
    [(name, headers)] = stage.dead
    assert (name, read_death(headers).reason, read_story(headers).crashes) == ("killer", DeadReason.CRASHED, 3)
    assert crashes == 4  # once in company, three times alone
    assert (stage.waiting, stage.unacked, stage.vhost.sleeping) == ([], [], 0)


def test_crash_that_the_runner_saw_is_counted_and_the_worker_goes_on(stage):
    stage.publish("killer", "a")
    stage.end(KILLED, "killer")
    stage.succeed("a")
    for _ in range(2):
        stage.loop.advance(2.1)
        stage.end(KILLED, "killer")
    [(_, headers)] = stage.dead
    assert (read_death(headers).reason, read_story(headers).crashes) == (DeadReason.CRASHED, 3)


def test_drains_of_a_suspect_are_no_crashes(stage):
    stage.publish("slow")
    stage.publish("odd", redrive_suspect=True)
    for _ in range(50):
        stage.drain()
        stage.succeed()
        assert stage.exit_codes == [0]
        stage.start()
        if stage.waiting == [] and stage.runner.running_ids() == []:
            break
        stage.publish("slow")
    assert stage.dead == []


def test_fifty_drains_of_a_full_prefetch_cost_nobody_an_attempt():
    stage = Stage(worker_config(concurrency=1))
    names = [f"m{number}" for number in range(20)]
    stage.publish(*names)
    done = set()
    for _ in range(50):
        stage.drain()
        done.update(stage.runner.running_ids())
        stage.succeed()
        assert stage.exit_codes == [0]
        stage.start()
    assert stage.dead == []
    assert all((story.attempt, story.crashes) == (1, 0) for story in stage.stories().values())
    assert done == set(names)


def test_suspect_whose_connection_breaks_while_it_runs_is_settled_afterwards_and_not_counted(stage):
    stage.publish("odd", redrive_suspect=True)
    stage.break_connection()
    stage.connect()
    stage.succeed("odd")
    assert (stage.unacked, stage.waiting, stage.dead) == ([], [], [])
    assert len(stage.runner.began) == 1
    stage.publish("a")
    assert stage.runner.running_ids() == ["a"]


@pytest.mark.parametrize("fault", ["cancel", "break"])
def test_suspect_that_the_broker_takes_back_when_it_was_just_acknowledged_did_not_kill_us(stage, fault):
    stage.publish("odd", redrive_suspect=True)
    [stored] = stage.consumer.session.unacked.values()
    stage.succeed("odd")
    assert stage.unacked == []
    stage.vhost.give_back([stored])  # the acknowledgement came too late
    if fault == "cancel":
        stage.cancel(takes_back=True)
    else:
        stage.break_connection()
    stage.connect()
    stage.succeed("odd")
    assert (stage.dead, stage.unacked, stage.waiting, stage.vhost.sleeping) == ([], [], [], 0)
    assert [alone for _, _, alone, _ in stage.runner.began] == [True, True]


@pytest.mark.parametrize("fault", ["cancel", "break"])
def test_suspect_that_the_broker_takes_back_when_it_was_just_sent_round_did_not_kill_us(stage, fault):
    stage.meet_first()
    stage.publish("odd", "odder", redrive_suspect=True)
    assert (stage.unacked, stage.waiting) == (["odd"], ["odder"])
    stage.vhost.give_back([make_stored("odder", redrive_suspect=True)])  # the acknowledgement came too late
    if fault == "cancel":
        stage.cancel(takes_back=True)
    else:
        stage.break_connection()
    stage.connect()
    for _ in range(4):
        stage.succeed()
    assert (stage.dead, stage.unacked, stage.waiting, stage.vhost.sleeping) == ([], [], [], 0)
    assert [name for name, *_ in stage.runner.began] == ["first", "odd", "odder", "odder"]


def test_suspect_that_came_back_because_it_was_sent_round_is_not_accused_when_the_connection_breaks_again(stage):
    stage.meet_first()
    stage.publish("odd", "odder", redrive_suspect=True)
    stage.vhost.ready.clear()  # another worker has the one that was sent round
    stage.succeed("odd")
    for number in range(20):  # until it takes many at a time again
        stage.publish(f"calm {number}")
        stage.succeed()
        stage.loop.advance(0.6)
    stage.publish("slow")
    stage.vhost.give_back([make_stored("odder", redrive_suspect=True)])  # the acknowledgement came too late
    stage.loop.settle()
    assert stage.runner.running_ids() == ["slow"]  # and the suspect waits to be alone
    stage.break_connection()
    stage.connect()
    stage.succeed("slow")
    stage.loop.advance(0.1)
    assert (stage.runner.running_ids(), stage.vhost.sleeping, stage.dead) == (["odder"], 0, [])


def test_suspect_that_was_sent_round_and_kills_its_worker_is_counted():
    stage = Stage()
    stage.meet_first()
    stage.publish("odd", "odder", redrive_suspect=True)
    stage.succeed("odd")
    assert stage.runner.running_ids() == ["odder"]
    stage.kill()
    stage.start()
    assert (stage.runner.began, stage.vhost.sleeping) == ([], 1)


def test_suspect_like_one_that_we_had_is_its_own_after_a_while(stage):
    stage.publish("odd", redrive_suspect=True)
    stage.succeed("odd")
    stage.loop.advance(301)
    stage.publish("odd", redelivered=True, redrive_suspect=True)
    assert stage.vhost.sleeping == 1  # after a crash it comes back later


def test_suspect_that_the_broker_takes_back_before_it_runs_lets_the_others_in(stage):
    stage.publish("a")
    stage.publish("odd", redrive_suspect=True)
    stage.break_connection()
    stage.succeed("a")
    stage.connect()
    assert stage.runner.running_ids() == ["odd"]
    stage.succeed("odd")
    stage.publish("b")
    assert stage.runner.running_ids() == ["b"]
    assert stage.dead == []


def test_suspect_waits_until_every_result_of_a_batch_is_settled():
    stage = Stage(worker_config(tries=2))
    stage.publish("a", "b")
    stage.publish("odd", redrive_suspect=True)
    stage.runner.end(FAILED)  # both at once: the first must not let the suspect in while the second is tried again
    stage.loop.advance(200)
    assert all(len(running) == 1 for name, _, _, running in stage.runner.began if name == "odd")


def test_suspect_is_acknowledged_before_anybody_else_begins(stage):
    stage.publish("odd", redrive_suspect=True)
    stage.publish("a")
    stage.succeed("odd")
    stage.kill()
    assert "odd" not in stage.waiting


def test_suspect_does_not_begin_while_another_cannot_be_sent_away(stage):
    stage.publish("a")
    stage.vhost.refusing = Refusal("no queue is bound for it")
    stage.publish("odd", "odder", redrive_suspect=True)
    stage.succeed("a")
    stage.loop.advance(60)
    assert stage.runner.running_ids() == []
    stage.vhost.refusing = None
    stage.loop.advance(31)
    assert stage.runner.began[-1][2:] == (True, ("odder",))


@pytest.mark.parametrize("moment", range(12))
def test_suspect_is_run_or_given_back_and_never_both_when_the_worker_stops(stage, moment):
    stage.vhost.arrive(Stored("", "orders", b"odd", Properties(message_id="odd", headers={"redrive-suspect": True})))
    for _ in range(moment):
        stage.loop.turn()
    stage.drain()
    stage.succeed()
    stage.loop.advance(1)
    ran, given_back = bool(stage.runner.began), stage.waiting == ["odd"]
    assert ran != given_back
    assert stage.exit_codes == [0]


def test_suspects_come_to_empty_hands_once_there_was_one(stage):
    stage.publish("first", redrive_suspect=True)
    stage.succeed("first")
    stage.publish("a", "odd", "b")
    assert stage.unacked == ["a"]
    stage.succeed("a")
    stage.publish("odder", redrive_suspect=True)
    stage.succeed("odd")
    stage.succeed("b")
    assert stage.unacked == ["odder"]
    assert stage.runner.began[-1] == ("odder", 1, True, ("odder",))


def test_worker_that_has_seen_no_suspect_for_a_while_takes_many_again(stage):
    stage.publish("odd", redrive_suspect=True)
    stage.succeed("odd")
    stage.publish(*(f"m{number}" for number in range(40)))
    for _ in range(20):
        stage.loop.advance(1)
        stage.succeed()
    assert len(stage.unacked) > 2
