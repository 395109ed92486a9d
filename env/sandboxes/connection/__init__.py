"""The host's side of the connection to a warden."""
