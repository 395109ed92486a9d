"""The conversation with the host: the request in hand, its commands, and what is answered.

The docstring of `main` has the protocol.
"""

from .checkpoints import flush_output
from .language import split_lines


class Requests:
    """The host's request that is being carried out.

    Attributes:
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
        self._request = None
        self._rest = {}
        self.queue = []
        self.results = []
        self.is_waiting = False

    @property
    def in_hand(self):
        """Whether there is a request that has no answer yet."""
        return self._request is not None

    def take(self):
        """Waits for the next request and queues its commands. Returns it."""
        self.is_waiting = True
        self._request = request = self._channel.receive()
        self._note(self._channel.nonce)
        self.is_waiting = False
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
        known = {"id": self._request.get("id"), "interim": True, "results": self.results}
        self._channel.send(dict(known, breakpoints=breakpoints))

    def answer(self, **facts):
        """Answers the request in hand with the results and these facts."""
        flush_output()
        reply = dict(facts, id=self._request.get("id"), results=self.results)
        reply.update(self._rest)
        self._request, self._rest = None, {}
        self._note(None)
        self._channel.send(reply)

    def close(self):
        """Ends the conversation."""
        self._channel.close()

    # - between processes: a checkpoint answers what another process was asked

    def as_data(self):
        """All that another process needs to answer in the place of this one."""
        pending = {"request": self._request, "queue": self.queue, "results": self.results}
        return dict(pending, nonce=self._channel.nonce)

    def take_over(self, data):
        """Goes on where another process was, given its `as_data`."""
        self._request, self.queue, self.results = data["request"], data["queue"], data["results"]
        self._channel.nonce = data["nonce"]

    def drop(self):
        """Forgets the request: whoever asked has been told that there is no answer."""
        self._request, self.queue = None, []

    def tell_gone(self, nonce, code):
        """Tells the host that the program has ended, with this exit code, without answering a request."""
        self._channel.nonce = nonce
        self._channel.send({"gone": code})
