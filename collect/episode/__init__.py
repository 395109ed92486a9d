"""Playing one episode: the state machine, its agent, its conversation and its result."""
