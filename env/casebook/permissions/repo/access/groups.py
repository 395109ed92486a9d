"""Groups of users. A group may contain other groups; circles do no harm."""


class Directory:
    """Members by group.

    `ancestors` is asked for each decision, so its answers are kept until the groups change.
    """

    def __init__(self):
        self._parents = {}
        self._known = {}

    def add(self, member, group):
        """Put a user or a group into a group."""
        self._parents.setdefault(member, set()).add(group)
        self._known.clear()

    def remove(self, member, group):
        """Take a user or a group out of a group; nothing happens when it is not in it."""
        self._parents.get(member, set()).discard(group)
        self._known.clear()

    def ancestors(self, member):
        """Return {group: distance} for all groups `member` is in, directly (distance 1) or through others."""
        if member not in self._known:
            self._known[member] = self._climb(member)
        return self._known[member]

    def members(self, group):
        """Return all users and groups that are in `group`, directly or through others, sorted."""
        return sorted(member for member in self._parents if group in self.ancestors(member))

    def _climb(self, member):
        found = {}
        level = [member]
        distance = 0
        while level:
            distance += 1
            above = {parent for name in level for parent in self._parents.get(name, ())}
            level = sorted(parent for parent in above if parent not in found and parent != member)
            for parent in level:
                found[parent] = distance
        return found
