"""The nursery: a test server that is ready and forks test servers instead of programs.

Standard library only, Python 3.6 to 3.14. A warm sandbox is used for one episode after another, and each episode has
its own test server. The nursery exists before the first one, has loaded the test runner but nothing from any workspace,
and stays. Like the launcher, it cannot be traced, so that no program of an episode can change it for the next one.

The warden's orders are the same as for the launcher; what they start is always a server, whose socket is its control.
An order with `ping` is answered by a byte on its one descriptor.
"""

import os
import signal
import socket

CONTROL = "GUMSHOE_CONTROL"


def tend(server):
    """Never returns: forks until the warden has gone. `server` is the `Server` that each fork becomes."""
    connection, system = server.connection, server.supervisor.system
    system.hide_memory()
    os.chdir("/")
    while True:
        order = server.launcher.receive(connection)
        if order is None:
            os._exit(0)
        launch, descriptors = order
        if "ping" in launch:
            os.write(descriptors[0], b".")
        elif os.fork() == 0:

            def become(_, environment):
                system.show_memory()
                become_server(server, int(environment[CONTROL]))

            server.supervisor.supervise(launch, *descriptors, execute=become)
        for each in descriptors:
            os.close(each)


def become_server(server, control):
    """Never returns: serves on this socket and drops the nursery's."""
    for each in {server.connection, server.reports, server.report_end}:
        each.close()
    ignore_signals(server.supervisor)
    server.connect(socket.socket(fileno=control))
    server.serve()
    os._exit(0)


def ignore_signals(supervisor):
    """Lets the kernel reap children, and ignores the polite signals by which programs could end this process."""
    for number in (*supervisor.IGNORED, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
