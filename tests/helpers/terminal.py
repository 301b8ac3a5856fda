"""What a program shows on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys


def on_terminal(code: str, columns: int = 60, **environment: str) -> str:
    """What Python code prints on a terminal of so many columns; a variable that is empty is not set."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), "NO_COLOR": "", **environment}
    env = {name: value for name, value in env.items() if value}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=theirs, env=env)
    os.close(theirs)
    content = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not part:
            break
        content += part
    os.close(ours)
    assert process.wait() == 0
    return content.decode()
