#!/usr/bin/env python3
"""Record a terminal session: each command is run, and what it prints is kept with its time.

    record.py OUT.cast COLUMNS ROWS < COMMANDS

Standard input has a command a line. OUT.cast is an asciicast (version 2). Commands appear as if typed; their output is that of
the run, and so are its times, but for pauses of more than two seconds, which are shortened. The first command that fails ends
the recording with its exit code.
"""
import codecs
import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
import time

TYPING, READING = 0.03, 1.5  # seconds for a character typed; to read an output
LONGEST = 2  # seconds: a pause without any output is shortened to this


def run(command, columns, rows, emit):
    """Run a command on a terminal of its own; emit(text) is called with what it prints. Returns its exit code."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvp("bash", ["bash", "-c", command])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            data = b""
        if not data:
            break
        emit(decoder.decode(data))
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main():
    out, columns, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    now, last = 0.0, time.monotonic()
    with open(out, "w", encoding="utf-8") as cast:

        def emit(text):
            nonlocal now, last
            at = time.monotonic()
            now, last = now + min(at - last, LONGEST), at
            print(json.dumps([round(now, 3), "o", text]), file=cast)
            sys.stdout.write(text)
            sys.stdout.flush()

        print(json.dumps({"version": 2, "width": columns, "height": rows}), file=cast)
        for line in sys.stdin.read().splitlines():
            emit("\x1b[1;32m$\x1b[0m ")
            for word in re.findall(r"\S+\s*", line):
                time.sleep(TYPING * len(word))
                emit(word)
            emit("\r\n")
            code = run(line, columns, rows, emit)
            if code:
                sys.exit(code)
            time.sleep(READING)
        emit("\x1b[1;32m$\x1b[0m ")
        time.sleep(LONGEST)
        emit(" ")


main()
