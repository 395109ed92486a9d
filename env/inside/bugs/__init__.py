"""Tries variants of a project against its tests, each in a fork of a process that has pytest loaded.

The maker of bugs starts `judge`, the repair solver of the evaluation `trials`.

    judge                      the program; it has loaded pytest, and what the project imports from outside
    |- ProjectSuite.run        imports the clean project, collects and runs its tests: twice, for the baseline
    |- ProjectSuite.collected  imports the clean project and collects its tests, once for all variants
    |  `- run                  gives changed functions their new code, then runs some tests: `RUNS_IN_PLACE` a variant
    `- ProjectSuite.collected  imports a variant that changes what runs at the import, and collects its tests
       `- run                  runs some of the tests or all: once or twice

    trials                     the program; it writes a variant into the project's files
    `- run_pytest              imports the project as it is now and runs its tests

Each hangs from the process that it is a fork of. One that has run tests writes what `OutcomeRecorder` has seen, as
JSON, into a pipe to its parent, and ends (`runs.forks.answer_of`); one that takes too long is killed, with all that it
has started.

A fork is cheap, but what a process has loaded is loaded in its forks, too. So one that is to import the project in its
present state comes from a process that has never imported it, and one that is to skip the import comes from a process
that has imported the clean project and changes functions in place (`runs.patches`).
"""

# How many times a run's wall-clock time may be spent, at most. The host adds these up to the limit of the program.
OTHER_RUNS = 2
"""The second run of the clean tests, and collecting them for all variants."""
RUNS_IN_PLACE = 3
"""The tests that execute the change, those that failed and the unfollowed ones, and what fails without the change."""
RUNS_IMPORTED = 3
"""Importing the variant and collecting its tests, and two runs."""
