"""Main program of a worker process."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from dataclasses import dataclass

from burnish.runtime.executors import message, native


@dataclass(frozen=True)
class Settings:
    """What a worker is told when it starts; numbers of file descriptors that it inherited."""

    parent: int
    arena_fd: int
    arena_bytes: int
    channel_offset: int
    spin_ns: int
    death_fd: int
    ready_fd: int
    stderr_fd: int


def main(settings: Settings) -> None:
    """Serve the channel until the driver says stop or is gone."""
    native.die_with_parent(settings.parent)
    # Ctrl-C goes to the whole process group; the driver decides what it means. A handler, unlike SIG_IGN, is not
    # inherited by programs that a task starts.
    signal.signal(signal.SIGINT, lambda *_: None)
    for fd in (settings.arena_fd, settings.death_fd):
        os.set_inheritable(fd, False)
    arena = native.attach_arena(settings.arena_fd, settings.arena_bytes)
    channel = native.channel(arena, settings.channel_offset)
    channel.set_spin(settings.spin_ns)
    watch = native.watch(channel, settings.death_fd)
    decoder = native.decoder(arena)
    os.dup2(settings.stderr_fd, 2)
    os.close(settings.stderr_fd)
    faulthandler.enable()
    os.write(settings.ready_fd, b"!")
    os.close(settings.ready_fd)
    native.serve(channel, decoder, message.pack, message.describe_error)
    sys.stdout.flush()
    del watch
