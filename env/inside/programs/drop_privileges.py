"""Becomes another user with its own limits and runs a program. Runs as the first program of a build sandbox.

python drop_privileges.py '{"user": id or null, "limits": {name: value}}' PROGRAM ARGUMENT...
"""

import json
import os
import resource
import sys


def main():
    """Sets the limits, gives up the user and replaces this program."""
    wanted = json.loads(sys.argv[1])
    for name, value in wanted["limits"].items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    user = wanted["user"]
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
