"""The investigator: it looks where it expects to learn the most, and reports when it is sure enough.

It keeps a belief about where the bug is, which is worked out anew from all that was observed, so that a replayed
episode comes to the same one. It knows no answer and asks no language model. Spectrum-based localization gives the
prior; changes tried in memory (predicate switching, value replacement, mutants) are the evidence.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from gumshoe.collect.data.evidence import failures, pack_arguments
from gumshoe.collect.episode.conversation import count_turns, format_decision, turn_with_call
from gumshoe.collect.episode.tool_output import tool_outputs
from gumshoe.collect.policies.investigator.belief import Belief, form_belief
from gumshoe.collect.policies.investigator.handover import conclusion, pack_of
from gumshoe.collect.policies.investigator.looks import Look, looks
from gumshoe.collect.policies.investigator.words import Words
from gumshoe.errors import PolicyError
from gumshoe.records import Completion, Decision, Message, ToolSchema

__all__ = ["InvestigatorPolicy"]

NOTHING = "Nothing that can be run here points to a place."
NEEDS_A_TEST = "No test fails here: someone has to reproduce the issue first, which I cannot."
WANDER = 0.25
"""How much the choice among looks varies: the standard deviation of the noise on the logarithm of their worth."""


class InvestigatorPolicy:
    """One episode of the investigator.

    Args:
        seed: decides the small choices: wording, which of several good looks comes first.
        sure: the probability of the first location at which it reports.
        patience: the worth, in bits for each run of the tests, below which another look is not taken.
        turns: maximum number of looks.
    """

    kind = "investigator"
    model = ""
    trusted = True

    def __init__(self, *, seed: int = 0, sure: float = 0.9, patience: float = 0.02, turns: int = 24) -> None:
        self._seed = seed
        self._sure = sure
        self._patience = patience
        self._turns = turns

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """The next turn. Raises PolicyError where the agent cannot report."""
        offered = {tool.name for tool in tools}
        if "report" not in offered:
            raise PolicyError("the investigator ends with the tool report: use agent.kind=seeker")
        outputs = tool_outputs(messages)
        turn = count_turns(messages)
        belief = form_belief(outputs)
        rng = random.Random(f"{self._seed} {turn}")
        words = Words(rng, belief, outputs)
        look = self._next(looks(belief, outputs, offered), belief, turn, rng)
        if look is not None:
            text = format_decision(Decision.SEEK, conclusion(belief).probability, words.before(look))
            return turn_with_call(turn, text, look.kind, look.arguments)
        sent_back = any(output.tool == "report" for output in outputs)
        pack = pack_of(belief, outputs, words, values=not sent_back)
        if pack is None:
            hidden = "reproduce" in offered and not failures(outputs)
            return Completion(text=format_decision(Decision.REPORT, 0.0, NEEDS_A_TEST if hidden else NOTHING))
        text = format_decision(Decision.REPORT, conclusion(belief).probability, words.at_the_end(pack))
        return turn_with_call(turn, text, "report", pack_arguments(pack, outputs))

    def _next(self, found: Sequence[Look], belief: Belief, turn: int, rng: random.Random) -> Look | None:
        """The look to take; None if it is time to report. It is never sure enough without an experiment."""
        tested = bool(belief.trials) or all(look.kind not in ("view", "whatif") for look in found)
        if turn >= self._turns or (tested and conclusion(belief).probability >= self._sure):
            return None
        worthwhile = [look for look in found if look.worth >= self._patience]
        return max(worthwhile, key=lambda look: look.worth * rng.lognormvariate(0, WANDER), default=None)
