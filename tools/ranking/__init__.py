"""Which function holds the bug: what tests run, the signals of each function, and the model that weighs them.

a watched run ──> Spectrum ──> candidates ──> Signals ──> probabilities ──> Suspects, likeliest first
                  spectrum     signals        signals     ranker            suspects.rank_by_signals
failing tests ──> Failures ────────┴────────────┘
                  signals, words
"""
