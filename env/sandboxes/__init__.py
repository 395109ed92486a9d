"""Places to run programs in: one client, one warden inside, and a backend for each way to start it."""
