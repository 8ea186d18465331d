"""The dead letters of one consumer in our hands, on a real broker."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from types import TracebackType

from redrive.amqp import Amqp
from redrive.errors import NotAccepted
from redrive.letters.going_back import Left
from redrive.letters.letter import Letter, read_letter
from redrive.letters.looking import Pass
from redrive.spec import RedriveAction
from redrive_operator.redriving.choosing import Choosing


class BrokerHands:
    """Use it as a context: its end gives back what is held."""

    def __init__(self, amqp: Amqp, over: Pass, choosing: Choosing, home: str) -> None:
        self._amqp = amqp
        self._pass = over
        self._choosing = choosing
        self._home = home
        self._windows = self._read()
        self.refused = False

    def __enter__(self) -> "BrokerHands":
        self._pass.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pass.__exit__(kind, error, trace)

    @property
    def is_late(self) -> bool:
        return self._pass.is_late()

    def take(self) -> Sequence[Letter]:
        return next(self._windows, ())

    def move(self, letters: Sequence[Letter]) -> int:
        """Put back, confirmed, and only then acknowledge; or only acknowledge, which deletes."""
        if self._choosing.redrive.action is RedriveAction.DELETE:
            self._pass.moved([letter.tag for letter in letters])
            return len(letters)
        frame_max = self._amqp.frame_max
        written = [(letter, self._choosing.send(letter, self._home, frame_max=frame_max)) for letter in letters]
        sendings = [(letter, sending) for letter, sending in written if not isinstance(sending, Left)]
        verdicts = self._amqp.publish_several([sending for _, sending in sendings])
        done = [letter.tag for (letter, _), refusal in zip(sendings, verdicts, strict=True) if refusal is None]
        self._pass.moved(done)
        refusals = [refusal for refusal in verdicts if refusal is not None]
        hopeless = all(refusal.hopeless for refusal in refusals)
        self.refused = self.refused or any(refusal.kind != "refused" for refusal in refusals)  # over one alone
        if refusals and not done:
            self._refuse(refusals[0].reason, hopeless=hopeless)
        return len(done)

    def wait(self, seconds: float) -> None:
        self._amqp.wait(seconds)

    def _refuse(self, reason: str, *, hopeless: bool) -> None:
        """Stop where the queue takes nothing; letters that no queue would ever take are only counted."""
        if not hopeless:
            raise NotAccepted(f"the queue {self._home!r} does not take what is put back: {reason}")

    def _read(self) -> Iterator[Sequence[Letter]]:
        for window in self._pass.windows():
            now = datetime.now(UTC)
            yield [read_letter(delivery, now=now) for delivery in window]
