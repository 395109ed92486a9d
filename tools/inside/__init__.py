"""What the tools need inside a sandbox: sent there as source, standard library only, Python 3.6 to 3.14."""
