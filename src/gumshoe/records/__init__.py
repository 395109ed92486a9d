"""The frozen records: what is stored, sent and compared. Data only, no behavior beyond derived values.

Everything that is written to disk carries `schema_version`. Facts are stored, values that follow from them are
properties. Sequences are tuples so that a record cannot be changed once it is made.
"""

from gumshoe.records.acting import (
    Completion,
    Decision,
    Failure,
    Message,
    Observation,
    StopReason,
    ToolCall,
    ToolSchema,
    Usage,
)
from gumshoe.records.base import SCHEMA_VERSION, Record
from gumshoe.records.context_pack import (
    Check,
    ContextPack,
    Fact,
    Finding,
    LineChange,
    Location,
    Probe,
    RuledOut,
    StopProbe,
    WhatIfProbe,
)
from gumshoe.records.programs import (
    FAILING,
    DebugFrame,
    Edit,
    Entry,
    ExecResult,
    Match,
    Reproduction,
    SessionReply,
    TestOutcome,
    TestRun,
)
from gumshoe.records.tasks import Limits, Oracle, Task, WorkspaceSpec
from gumshoe.records.trajectory import BranchPoint, PolicyInfo, Provenance, Score, Step, TaskRef, Trajectory

__all__ = [
    "FAILING",
    "SCHEMA_VERSION",
    "BranchPoint",
    "Check",
    "Completion",
    "ContextPack",
    "DebugFrame",
    "Decision",
    "Edit",
    "Entry",
    "ExecResult",
    "Fact",
    "Failure",
    "Finding",
    "Limits",
    "LineChange",
    "Location",
    "Match",
    "Message",
    "Observation",
    "Oracle",
    "PolicyInfo",
    "Probe",
    "Provenance",
    "Record",
    "Reproduction",
    "RuledOut",
    "Score",
    "SessionReply",
    "Step",
    "StopProbe",
    "StopReason",
    "Task",
    "TaskRef",
    "TestOutcome",
    "TestRun",
    "ToolCall",
    "ToolSchema",
    "Trajectory",
    "Usage",
    "WhatIfProbe",
    "WorkspaceSpec",
]
