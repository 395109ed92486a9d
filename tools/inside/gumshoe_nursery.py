"""The nursery: a test server that is ready, and forks test servers instead of programs.

Standard library only, Python 3.6 to 3.14. A warm sandbox is used for one episode after another, and each has a test
server of its own. The nursery is there before the first one, has the test runner loaded and nothing of any workspace,
and stays. Like the launcher, it cannot be traced, so that no program of an episode can change it for the next one.

The warden's orders are those for the launcher; what is to be started is always a server, with its socket as control.
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
    """Never returns: serves on this socket, and forgets the nursery's."""
    for each in {server.connection, server.reports, server.report_end}:
        each.close()
    ignore_signals(server.supervisor)
    server.connect(socket.socket(fileno=control))
    server.serve()
    os._exit(0)


def ignore_signals(supervisor):
    """Lets the kernel take care of children, and no program end this process by a polite signal."""
    for number in (*supervisor.IGNORED, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
