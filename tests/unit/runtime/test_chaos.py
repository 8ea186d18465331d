"""Whatever happens to a worker, no message is lost."""

from hypothesis import given, settings
from hypothesis import strategies as st
from samples import worker_config

from redrive.outcome import Crashed, Rejected, Snoozed, Succeeded
from redrive.runtime.drain import Progress
from redrive.runtime.ports import Refusal

from .stage import FAILED, Stage

RESULTS = (Succeeded(), FAILED, Snoozed(), Rejected("never"), Crashed("killed", alone=True), Crashed("?", alone=False))

FAULTS = ("break", "cancel", "connect", "stall", "unstall", "refuse", "refuse letters", "refuse for good", "accept")


def actions(*faults):
    return st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 6)),
        st.tuples(st.just("publish redelivered"), st.just(1)),
        st.tuples(st.just("publish suspect"), st.just(1)),
        st.tuples(st.just("end"), st.integers(0, len(RESULTS) - 1)),
        st.tuples(st.just("end one"), st.integers(0, len(RESULTS) - 1)),
        st.tuples(st.just("advance"), st.sampled_from([0.005, 0.5, 3.0, 40.0])),
        st.tuples(st.sampled_from([*FAULTS, *faults]), st.just(0)),
    )


class Ledger:
    """Does what it is told to a worker, and knows every id that it published."""

    def __init__(self):
        self.stage = Stage(worker_config(concurrency=3, tries=2))
        self.published = []
        self.done = set()
        self.deleted = []  # the channels of queues that were

    def do(self, what, number):
        stage = self.stage
        match what:
            case "publish" | "publish redelivered" | "publish suspect":
                names = [f"m{len(self.published) + index}" for index in range(number)]
                self.published += names
                headers = {"redrive_suspect": True} if what == "publish suspect" else {}
                stage.publish(*names, redelivered=what == "publish redelivered", **headers)
            case "end":
                stage.end(RESULTS[number])
            case "end one":
                stage.end(RESULTS[number], *stage.runner.running_ids()[:1] or ["nobody"])
            case "advance":
                stage.loop.advance(number)
            case "break":
                stage.break_connection()
            case "cancel":
                stage.cancel(takes_back=True)
            case "delete" if stage.consumer.session is not None:
                self.deleted.append(stage.delete_queue())
            case "break deleted":
                for session in self.deleted:
                    stage.lose(session)
                self.deleted.clear()
            case "connect" if stage.consumer.session is None:
                stage.connect()
            case "stall":
                stage.publisher.connected = False
            case "unstall":
                stage.publisher.connect()
            case "refuse":
                stage.vhost.refusing = Refusal("no queue is bound for it")
            case "refuse letters":
                stage.refuse("redrive.dead")
            case "refuse for good":
                stage.vhost.refusing = Refusal("too large", hopeless=True)
            case "accept":
                stage.accept()
            case "kill":
                self._restart(stage.kill)
            case "drain":
                self._restart(self._drain)
        stage.loop.settle()

    def finish(self):
        """Mend everything, and let every handler succeed."""
        stage = self.stage
        stage.accept()
        stage.publisher.connect()
        if stage.consumer.session is None:
            stage.connect()
        for _ in range(2000):
            stage.succeed()
            stage.loop.advance(1)
            is_left = stage.waiting or stage.vhost.sleeping or stage.unacked
            if not is_left and stage.runtime.progress() == Progress(0, 0):
                break
        self._note()

    def _restart(self, end):
        end()
        self._note()
        self.stage.start()

    def _drain(self):
        self.stage.drain()
        while self.stage.runner.running:
            self.stage.succeed()
        self.stage.loop.advance(40)
        assert self.stage.exit_codes == [0]

    def _note(self):
        self.done |= {name for name, kind in self.stage.notes.of("settled") if kind == "Done"}


@settings(max_examples=300)
@given(st.lists(actions("kill", "drain"), max_size=40))
def test_every_message_is_done_or_parked_whatever_happens(steps):
    check(steps)


@settings(max_examples=300)
@given(st.lists(actions("delete", "break deleted"), max_size=40))
def test_every_message_of_a_worker_that_lives_is_done_or_parked_though_its_queue_is_deleted(steps):
    check(steps)


def check(steps):
    ledger = Ledger()
    for step in steps:
        ledger.do(*step)
    ledger.finish()
    dead = {name for name, _ in ledger.stage.dead}
    assert ledger.done | dead == set(ledger.published)
    assert (ledger.stage.waiting, ledger.stage.unacked, ledger.stage.vhost.sleeping) == ([], [], 0)
