"""Places to run programs in: one client, one warden inside, and a backend for each way to start it.

    open_sandbox(task) ──> Backend          starts a sandbox, with a warden in it, and a terminal to that
           │                  │
           │       Link ──> Channel ══════> warden (`env/inside/warden`)
           │         │
           │   WardenSandbox                what everybody else sees, tools only as `protocols.Sandbox`
           │
           └──────> stage                   puts the repository in, activates its environment, runs its setup

| module | what it does |
|---|---|
| `open` | chooses the kind of sandbox, starts it and puts the task in; the door |
| `client` | `WardenSandbox`: run, read, write, sessions, snapshots |
| `channel` | the connection to a warden: its life (`Link`), and one request with its answer (`Channel`) |
| `backend` | what a backend is, and what those share whose warden is a child of this process |
| `local`, `bubblewrap`, `docker` | the backends; the folder `host` has what they need of this machine |
| `engine` | Docker and Podman: connections, images, orphans |
| `staging` | what is put into a sandbox: the repository, the byte code of its tests, and our modules |
"""
