"""The conversation with the host: the request in hand, its commands, and what is answered.

The docstring of `main` has the protocol.
"""

from ..programs.program import flush_output
from .language import split_lines


class Requests:
    """The host's request that is being carried out.

    Attributes:
        in_hand: whether there is a request that has no answer yet.
        queue: the command lines that are still to be run.
        results: of the commands that were run; that of the running one comes last.
        is_waiting: whether the debugger waits for a request.

    Args:
        channel: leads to the host.
        note: is called with the nonce of a request once it is there, and with None once it is answered.
    """

    def __init__(self, channel, note):
        self._channel = channel
        self._note = note
        self._rest = {}
        self.in_hand = False
        self.queue = []
        self.results = []
        self.is_waiting = False

    def take(self):
        """Waits for the next request and queues its commands. Returns it."""
        self.is_waiting = True
        request = self._channel.receive()
        self._note(self._channel.nonce)
        self.is_waiting, self.in_hand = False, True
        self.results = []
        self.queue = [line for text in request.get("lines", ()) for line in split_lines(text)]
        return request

    def next_command(self):
        """Takes the next command from the queue. Returns it, and its result, which is to be filled in."""
        line = self.queue.pop(0)
        self.results.append({"command": line, "output": ""})
        return line, self.results[-1]

    def note_result(self, **facts):
        """Adds to the result of the running command."""
        self.results[-1].update(facts)

    def leave_to_host(self, state, **facts):
        """Has the host do the rest: the next answer says in which state, and the queue is dropped."""
        self._rest = dict(facts, state=state)
        self.queue = []

    def give_up_queue(self):
        """The program has ended: what is still in the queue is not run."""
        self.results += [{"command": line, "output": "not run: the program has ended"} for line in self.queue]
        self.queue = []

    def announce(self, breakpoints):
        """Tells the host, before the program goes on, what it may never tell otherwise."""
        self._channel.send({"interim": True, "results": self.results, "breakpoints": breakpoints})

    def answer(self, **facts):
        """Answers the request in hand with the results and these facts."""
        flush_output()
        reply = dict(facts, results=self.results, **self._rest)
        self.in_hand, self._rest = False, {}
        self._note(None)
        self._channel.send(reply)

    def close(self):
        """Ends the conversation."""
        self._channel.close()

    # - between processes: a checkpoint answers what another process was asked

    def as_data(self):
        """All that another process needs to answer in the place of this one."""
        return {"queue": self.queue, "results": self.results, "nonce": self._channel.nonce}

    def take_over(self, data):
        """Goes on where another process was, given its `as_data`."""
        self.queue, self.results, self._channel.nonce = data["queue"], data["results"], data["nonce"]
        self.in_hand = True

    def drop(self):
        """Forgets the request: whoever asked has been told that there is no answer."""
        self.in_hand, self.queue = False, []

    def tell_gone(self, nonce, code):
        """Tells the host that the program has ended, with this exit code, without answering a request."""
        self._channel.nonce = nonce
        self._channel.send({"gone": code})
