"""What the tools need inside a sandbox: sent there as source, run there on Python 3.6 or newer, standard library only."""
