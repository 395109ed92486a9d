"""The filter of system calls: one policy, as a program for the kernel and as a profile for container engines.

What today's kernels offer is allowed, except what is refused below: other namespaces, mounts, keyrings, tracing
and reading other processes, changing their limits and scheduling, io_uring, BPF, kernel modules, clocks, and sockets
that lead past the network namespace. What a later kernel adds is refused as well. A refused call fails with EPERM;
unknown ones, and `clone3`, whose flags a filter cannot see, with ENOSYS, so that the C library falls back on others.
"""

from __future__ import annotations

import functools
import json
import platform
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

REFUSED = frozenset(
    {
        # Namespaces, mounts, roots.
        *("clone3", "setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount"),
        *("fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "statmount", "listmount", "listns"),
        *("name_to_handle_at", "open_by_handle_at", "fanotify_init", "fanotify_mark", "quotactl", "quotactl_fd"),
        # Keyrings.
        *("add_key", "request_key", "keyctl"),
        # Other processes' memory and descriptors.
        *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd"),
        *("kcmp", "perf_event_open", "userfaultfd", "move_pages", "migrate_pages"),
        # Large interfaces of the kernel that tests have no use for.
        *("io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "lookup_dcookie", "vmsplice"),
        *("init_module", "finit_module", "delete_module", "create_module", "query_module", "get_kernel_syms"),
        *("kexec_load", "kexec_file_load", "uselib", "_sysctl", "sysfs", "nfsservctl", "vserver", "security"),
        *("tuxcall", "afs_syscall", "getpmsg", "putpmsg", "epoll_ctl_old", "epoll_wait_old"),
        *("modify_ldt", "iopl", "ioperm"),
        *("lsm_set_self_attr", "lsm_get_self_attr", "lsm_list_modules"),
        # The machine as a whole.
        *("reboot", "swapon", "swapoff", "acct", "syslog", "vhangup", "sethostname", "setdomainname"),
        *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex"),
    }
)
# The flags of `clone` and `unshare` that ask for a namespace, from <linux/sched.h>.
CLONE_NEWTIME, CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS = 0x80, 0x20000, 0x2000000, 0x4000000
CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x8000000, 0x10000000, 0x20000000, 0x40000000
# In the flags of `clone`, the lowest byte is the signal that the child's end sends, so CLONE_NEWTIME cannot be asked
# for there, and its bit is part of a signal's number.
CLONE_NAMESPACES = (
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET
)
UNSHARE_NAMESPACES = CLONE_NAMESPACES | CLONE_NEWTIME
LOW = 0xFFFFFFFF
PRIO_PROCESS, PRIO_PGRP, IOPRIO_WHO_PROCESS, IOPRIO_WHO_PGRP = 0, 1, 1, 2
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, NETLINK_ROUTE = 1, 2, 10, 16, 0


class Condition(NamedTuple):
    """The low 32 bits of an argument, masked, must equal a value."""

    argument: int
    value: int
    mask: int = LOW


CONDITIONS: Mapping[str, Sequence[Sequence[Condition]]] = {
    "clone": [[Condition(0, 0, CLONE_NAMESPACES)]],
    "unshare": [[Condition(0, 0, UNSHARE_NAMESPACES)]],
    "socket": [[Condition(0, family)] for family in (AF_UNIX, AF_INET, AF_INET6)]
    + [[Condition(0, AF_NETLINK), Condition(2, NETLINK_ROUTE)]],
    "socketpair": [[Condition(0, AF_UNIX)]],
    # Limits and scheduling of the caller only, which 0 names: a filter cannot tell its process id from another's.
    **{f"sched_{name}": [[Condition(0, 0)]] for name in ("setaffinity", "setattr", "setparam", "setscheduler")},
    "prlimit64": [[Condition(0, 0)]],
    "setpriority": [[Condition(0, kind), Condition(1, 0)] for kind in (PRIO_PROCESS, PRIO_PGRP)],
    "ioprio_set": [[Condition(0, kind), Condition(1, 0)] for kind in (IOPRIO_WHO_PROCESS, IOPRIO_WHO_PGRP)],
    "personality": [[Condition(0, kind)] for kind in (0, 0x8, 0x20000, 0x20008, LOW)],
}
"""Calls that are allowed only when all conditions of one of the alternatives hold."""

ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
LOAD, AND, EQUAL, GREATER, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x25, 0x35, 0x06
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
Instruction = tuple[int, int, int, int]
"""Code, jump when true, jump when false (both in instructions to skip), operand."""


@functools.cache
def _numbers() -> dict[str, dict[str, int]]:
    """Each architecture's calls by name."""
    tables: dict[str, dict[str, int]] = {name: {} for name in ARCHITECTURES}
    for line in (Path(__file__).parent / "syscalls.txt").read_text(encoding="ascii").splitlines()[1:]:
        call, *numbers = line.split()
        for table, number in zip(tables.values(), numbers, strict=True):
            if number != "-":
                table[call] = int(number)
    return tables


def filter_unavailable_reason() -> str | None:
    """Why there is no filter for this machine; None where there is one."""
    machine = platform.machine()
    return None if machine in ARCHITECTURES else f"no filter of system calls for the processor {machine}"


@functools.cache
def filter_program(machine: str | None = None) -> bytes | None:
    """The filter as the kernel takes it, for this machine or another; None where there is none."""
    machine = machine or platform.machine()
    if machine not in ARCHITECTURES:
        return None
    numbers = _numbers()[machine]
    program: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (EQUAL, 1, 0, ARCHITECTURES[machine]),
        (RETURN, 0, 0, ENOSYS),
        (LOAD, 0, 0, NUMBER_AT),
    ]
    allowed = [number for name, number in numbers.items() if name not in REFUSED and name not in CONDITIONS]
    for low, high in _ranges(sorted(allowed)):
        program += [(AT_LEAST, 0, 2, low), (GREATER, 1, 0, high), (RETURN, 0, 0, ALLOW)]
    for name, alternatives in CONDITIONS.items():
        block = [step for conditions in alternatives for step in _alternative(conditions)] + [(RETURN, 0, 0, EPERM)]
        program += [(EQUAL, 0, len(block), numbers[name]), *block]
    program += [
        (GREATER, 1, 0, max(numbers.values())),
        (EQUAL, 0, 1, numbers["clone3"]),
        (RETURN, 0, 0, ENOSYS),
        (RETURN, 0, 0, EPERM),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Sorted numbers as closed ranges."""
    low = high = numbers[0]
    for number in numbers[1:]:
        if number > high + 1:
            yield low, high
            low = number
        high = number
    yield low, high


def _alternative(conditions: Sequence[Condition]) -> list[Instruction]:
    """Returns ALLOW when all conditions hold, else continues after it."""
    steps: list[Instruction] = [(RETURN, 0, 0, ALLOW)]
    for argument, value, mask in reversed(conditions):
        checks: list[Instruction] = [(LOAD, 0, 0, ARGUMENTS_AT + 8 * argument), (AND, 0, 0, mask)]
        steps = [*checks, (EQUAL, 0, len(steps), value), *steps]
    return steps


@functools.cache
def docker_profile() -> str:
    """The filter as JSON for container engines."""
    known = {name for table in _numbers().values() for name in table}
    rules: list[dict[str, Any]] = [
        {"names": sorted(known - REFUSED - set(CONDITIONS)), "action": "SCMP_ACT_ALLOW"},
        {"names": sorted(REFUSED - {"clone3"}), "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
        # Named, since older engines know no default but EPERM.
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
    ]
    for name, alternatives in CONDITIONS.items():
        for conditions in alternatives:
            arguments = [
                {"index": argument, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}
                for argument, value, mask in conditions
            ]
            rules.append({"names": [name], "action": "SCMP_ACT_ALLOW", "args": arguments})
    profile = {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 38,
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
        "syscalls": rules,
    }
    return json.dumps(profile)
