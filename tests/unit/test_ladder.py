"""The ladder, walked without a broker: topic exchanges, alternates and TTLs are simulated over the planned values."""

from collections.abc import Iterable, Iterator
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive import ladder
from redrive.elements import Binding, Element, Exchange, Queue
from redrive.ladder import UNIT, LadderError, Rung, plan_ladder, reach, round_up, routing_key

ADDRESS = "shop/orders"
CONSUMERS = (
    ladder.delivery_binding(ADDRESS, "orders"),
    ladder.delivery_binding("shop/orders_eu", "orders.eu"),
    ladder.delivery_binding("shop2/orders", "orders2"),
)
SECOND = timedelta(seconds=1)


class Broker:
    """Routes as RabbitMQ does: a set of queues for each message, the alternate exchange if that set is empty."""

    def __init__(self, elements: Iterable[Element]) -> None:
        elements = tuple(elements)
        self.exchanges = {e.name: e for e in elements if isinstance(e, Exchange)}
        self.queues = {e.name: dict(e.arguments) for e in elements if isinstance(e, Queue)}
        self.queues |= {binding.destination: {} for binding in CONSUMERS}
        self.bindings: dict[str, list[tuple[list[str], Binding]]] = {name: [] for name in self.exchanges}
        for binding in (*(e for e in elements if isinstance(e, Binding)), *CONSUMERS):
            assert binding.source in self.exchanges, "bound before its exchange was declared"
            assert binding.destination in self.queues | self.exchanges, "bound before its destination was declared"
            self.bindings[binding.source].append((binding.routing_key.split("."), binding))

    def route(self, exchange: str, key: str) -> set[str]:
        words = key.split(".")
        fanout = self.exchanges[exchange].type == "fanout"
        found: set[str] = set()
        for pattern, binding in self.bindings[exchange]:
            if fanout or matches(pattern, words):
                onward = binding.destination_kind == "exchange"
                found |= self.route(binding.destination, key) if onward else {binding.destination}
        alternate = dict(self.exchanges[exchange].arguments).get("alternate-exchange")
        return found or (self.route(str(alternate), key) if alternate else set())

    def walk(self, key: str, queue: str) -> Iterator[str]:
        """The queues a message goes through from `queue` on, to the one that has no TTL."""
        yield queue
        while "x-message-ttl" in self.queues[queue]:
            (queue,) = self.route(str(self.queues[queue]["x-dead-letter-exchange"]), key)
            yield queue

    def journey(self, key: str) -> list[str]:
        entered = self.route(ladder.RETRY, key)
        assert len(entered) <= 1, "a message entered two queues"
        return [step for queue in entered for step in self.walk(key, queue)]

    def slept(self, queues: Iterable[str]) -> timedelta:
        return timedelta(milliseconds=sum(int(self.queues[queue].get("x-message-ttl", 0)) for queue in queues))


def matches(pattern: list[str], words: list[str]) -> bool:
    assert "#" not in pattern
    return len(pattern) == len(words) and all(p in ("*", w) for p, w in zip(pattern, words, strict=True))


BUILT = {places: Broker(plan_ladder(places)) for places in range(1, 6)}
delays = st.integers(0, 16**5 * 125 - 125).map(lambda ms: timedelta(milliseconds=ms))
any_places = st.integers(1, 5)
addresses = st.from_regex(r"[a-z0-9-]{1,20}/[a-z0-9_-]{1,40}", fullmatch=True)


@pytest.mark.parametrize(
    ("seconds", "key", "queues"),
    [
        (0, "0.0.0.0.0", []),
        (0.001, "0.0.0.0.1", ["0.1"]),
        (0.125, "0.0.0.0.1", ["0.1"]),
        (0.126, "0.0.0.0.2", ["0.2"]),
        (2, "0.0.0.1.0", ["1.1"]),
        (5, "0.0.0.2.8", ["1.2", "0.8"]),
        (10, "0.0.0.5.0", ["1.5"]),
        (20, "0.0.0.a.0", ["1.10"]),
        (30, "0.0.0.f.0", ["1.15"]),
        (60, "0.0.1.e.0", ["2.1", "1.14"]),
        (300, "0.0.9.6.0", ["2.9", "1.6"]),
        (512, "0.1.0.0.0", ["3.1"]),
        (36 * 3600, "f.d.2.0.0", ["4.15", "3.13", "2.2"]),
    ],
)
def test_a_delay_is_five_digits_and_sleeps_once_for_each_that_is_not_zero(seconds, key, queues):
    delay = timedelta(seconds=seconds)
    assert routing_key(delay, ADDRESS) == f"{key}.{ADDRESS}"
    assert [rung.name for rung in ladder.hops(delay)] == [f"redrive.delay.{queue}" for queue in queues]
    assert BUILT[5].journey(f"{key}.{ADDRESS}") == [*(f"redrive.delay.{queue}" for queue in queues), "orders"]


def test_the_watchbot_delays_are_one_hop_each():
    assert [len(ladder.hops(SECOND * 2**n)) for n in range(1, 10)] == [1] * 9


@given(delays, addresses)
def test_a_routing_key_gives_back_its_rounded_delay_and_its_address(delay, address):
    assert ladder.read_routing_key(routing_key(delay, address)) == (round_up(delay), address)


@pytest.mark.parametrize(
    "key",
    ["", "orders", "0.0.0.0.shop/orders", "0.0.0.0.0.", "0.0.0.0.0.0.a", "0.0.0.0.G.a", "0.0.0.0.A.a", "0.0.00.0.0.a"],
)
def test_a_key_that_is_not_of_the_ladder_is_read_as_none(key):
    assert ladder.read_routing_key(key) is None


@given(st.timedeltas(timedelta(0), reach(5)))
def test_a_delay_is_never_early_and_late_by_less_than_a_unit(delay):
    assert delay <= round_up(delay) < delay + UNIT


@given(st.timedeltas(timedelta(0), timedelta(hours=36)), st.timedeltas(timedelta(0), timedelta(hours=36)))
def test_a_delay_within_the_longest_one_is_within_reach_of_its_ladder_also_when_rounded(a, b):
    delay, max_delay = sorted((a, b))
    assert round_up(delay) <= round_up(max_delay) <= reach(ladder.places_for(max_delay))


@pytest.mark.parametrize(
    ("seconds", "places"),
    [(0, 1), (1.875, 1), (1.876, 2), (31.875, 2), (32, 3), (511.875, 3), (512, 4), (8191, 4), (8192, 5), (129600, 5)],
)
def test_a_ladder_has_as_many_places_as_the_longest_delay_needs(seconds, places):
    assert ladder.places_for(SECOND * seconds) == places


def test_a_delay_beyond_five_digits_is_refused_with_the_reach():
    with pytest.raises(LadderError, match="1 day, 12:24:31"):
        ladder.places_for(reach(5) + UNIT)
    with pytest.raises(LadderError, match="longer than the ladder"):
        routing_key(reach(5) + UNIT, ADDRESS)


def test_the_longest_address_fits_a_routing_key_and_a_longer_one_is_refused():
    assert len(routing_key(SECOND, ladder.address_of("n" * 63, "a" * 180))) == 254
    with pytest.raises(LadderError, match="at most 255"):
        routing_key(SECOND, ladder.address_of("n" * 63, "a" * 182))
    with pytest.raises(LadderError, match="one word"):
        routing_key(SECOND, "shop/orders.eu")


def test_a_name_with_dots_is_one_word_of_the_key():
    assert ladder.address_of("shop", "orders.v2.eu") == "shop/orders_v2_eu"


@pytest.mark.parametrize("places", range(1, 6))
def test_every_place_has_fifteen_quorum_queues_which_lose_nothing(places):
    queues = [e for e in plan_ladder(places) if isinstance(e, Queue) and e.name != ladder.ORPHANS]
    assert len(queues) == 15 * places
    for queue in queues:
        arguments = dict(queue.arguments)
        assert arguments["x-queue-type"] == "quorum"
        assert arguments["x-dead-letter-strategy"] == "at-least-once"
        assert arguments["x-overflow"] == "reject-publish"
        assert 125 <= int(arguments["x-message-ttl"]) < 2**32
        assert "x-dead-letter-routing-key" not in arguments, "the address would be lost at the first hop"


def test_a_rung_says_its_queue_in_full():
    assert Rung(2, 9).queue == Queue(
        "redrive.delay.2.9",
        (
            ("x-dead-letter-exchange", "redrive.retry.2"),
            ("x-dead-letter-strategy", "at-least-once"),
            ("x-delivery-limit", 1_000_000),
            ("x-message-ttl", 288_000),
            ("x-overflow", "reject-publish"),
            ("x-queue-type", "quorum"),
        ),
    )
    assert Rung(0, 1).next_exchange == "redrive.delivery"


def test_bindings_are_straight_with_a_star_for_each_open_word():
    bindings = set(plan_ladder(3))
    assert Binding("redrive.retry", "redrive.delay.2.9", "queue", "0.0.9.*.*.*") in bindings
    assert Binding("redrive.retry", "redrive.delay.0.15", "queue", "0.0.0.0.f.*") in bindings
    assert Binding("redrive.retry", "redrive.delivery", "exchange", "0.0.0.0.0.*") in bindings
    assert Binding("redrive.retry.2", "redrive.delay.1.6", "queue", "*.*.*.6.*.*") in bindings
    assert Binding("redrive.retry.2", "redrive.delay.0.6", "queue", "*.*.*.0.6.*") in bindings
    assert Binding("redrive.retry.2", "redrive.delivery", "exchange", "*.*.*.0.0.*") in bindings


@given(any_places, delays)
@settings(deadline=None)
def test_a_message_sleeps_once_a_digit_highest_first_and_reaches_exactly_its_consumer(places, delay):
    journey = BUILT[places].journey(routing_key(delay, ADDRESS))
    if delay > reach(places):
        assert journey == [], "a delay that is too long must come back to its publisher"
        return
    assert journey == [*(rung.name for rung in ladder.hops(delay)), "orders"]
    assert BUILT[places].slept(journey) == round_up(delay)


def test_every_delay_of_a_two_place_ladder_is_slept_exactly():
    for units in range(256):
        journey = BUILT[2].journey(routing_key(units * UNIT, ADDRESS))
        assert BUILT[2].slept(journey) == units * UNIT
        assert journey[-1] == "orders"


@given(any_places, delays)
@settings(deadline=None)
def test_a_message_for_a_consumer_that_is_gone_ends_in_the_orphans(places, delay):
    journey = BUILT[places].journey(routing_key(min(delay, reach(places)), "shop/gone"))
    assert journey[-1] == ladder.ORPHANS


@given(any_places, st.integers(1, 15), st.text("abc.*#", max_size=12))
@settings(deadline=None)
def test_a_rung_never_holds_what_it_cannot_hand_on(places, value, key):
    *_, last = BUILT[places].walk(key, Rung(places - 1, value).name)
    assert last == ladder.ORPHANS


def test_the_way_into_the_ladder_has_no_alternate_so_that_mandatory_tells():
    (retry,) = (e for e in plan_ladder(5) if isinstance(e, Exchange) and e.name == ladder.RETRY)
    assert retry.arguments == ()


ARRIVAL = Exchange(ladder.DELIVERY, arguments=(("alternate-exchange", ladder.ORPHANS),))
SAMPLES = [
    *(Rung(place, value).delay for place in range(5) for value in (1, 9, 15)),
    *(timedelta(seconds=s) for s in (0, 0.3, 5, 31.875, 60, 300, 511.875, 600.125, 7201, 129600)),
    *(reach(places) for places in range(1, 6)),
]


@pytest.mark.parametrize(("before", "after"), [(a, b) for a in range(6) for b in range(1, 6) if a < b])
def test_while_a_ladder_grows_every_message_has_exactly_one_way_at_every_step(before, after):
    state = dict.fromkeys(plan_ladder(before) if before else ())
    for element in plan_ladder(after):
        if element in state:
            continue  # declaring it again changes nothing
        state[element] = None
        if ARRIVAL in state:
            check_every_way(Broker(state), before, complete=len(state) == len(plan_ladder(after)), after=after)


def check_every_way(broker: Broker, before: int, *, complete: bool, after: int) -> None:
    for delay in SAMPLES:
        key = routing_key(delay, ADDRESS)
        whole = [*(rung.name for rung in ladder.hops(delay)), "orders"]
        journey = broker.journey(key) if ladder.RETRY in broker.exchanges else []
        must_pass = (before and delay <= reach(before)) or (complete and delay <= reach(after))
        assert journey == whole or (journey == [] and not must_pass)
        for position, queue in enumerate(whole[:-1]):
            if before and Rung(before - 1, 15).delay >= ladder.hops(delay)[position].delay:
                assert list(broker.walk(key, queue)) == whole[position:], "a sleeper lost its way"


@given(st.data())
@settings(deadline=None)
def test_growing_in_steps_ends_where_growing_at_once_does(data):
    steps = data.draw(st.lists(any_places, min_size=1, max_size=4))
    grown = {element for places in steps for element in plan_ladder(places)}
    assert grown == set(plan_ladder(max(steps)))
