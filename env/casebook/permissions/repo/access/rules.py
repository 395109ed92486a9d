"""Rules on resources. Resources are paths: a rule on "docs" holds for "docs/plan", too."""

from dataclasses import dataclass
from typing import List

ALLOW = "allow"
DENY = "deny"


@dataclass(frozen=True)
class Rule:
    """`who` (a user or a group) may, or may not, do `action` on a resource. The action "*" stands for all."""

    who: str
    action: str
    resource: str
    effect: str = ALLOW

    def covers(self, action, resource):
        """Tell whether the rule speaks about `action` on `resource`."""
        if self.action not in ("*", action):
            return False
        return resource == self.resource or resource.startswith(self.resource + "/")

    def depth(self):
        """Return the number of parts of the resource: deeper rules are more specific."""
        return self.resource.count("/") + 1


class Policy:
    """Decides by the most specific rule.

    A rule on a deeper resource beats one higher up. At the same depth, a rule for a nearer group beats one for a
    farther group, and a rule for the user beats both. At the same distance, denial beats permission.
    """

    def __init__(self, directory):
        self._directory = directory
        self._rules: List[Rule] = []

    def allow(self, who, action, resource):
        """Add a rule that permits."""
        self._rules.append(Rule(who, action, resource))

    def deny(self, who, action, resource):
        """Add a rule that forbids."""
        self._rules.append(Rule(who, action, resource, DENY))

    def may(self, user, action, resource):
        """Tell whether `user` may do `action` on `resource`; what no rule speaks about is forbidden."""
        rule = self.deciding_rule(user, action, resource)
        return rule is not None and rule.effect == ALLOW

    def deciding_rule(self, user, action, resource):
        """Return the rule that decides, None when there is none."""
        distances = {user: 0, **self._directory.ancestors(user)}
        candidates = [rule for rule in self._rules if rule.who in distances and rule.covers(action, resource)]
        if not candidates:
            return None
        return min(candidates, key=lambda rule: (-rule.depth(), distances[rule.who], rule.effect == ALLOW))

    def who_may(self, action, resource, users):
        """Return those of `users` who may do `action` on `resource`."""
        return [user for user in users if self.may(user, action, resource)]
