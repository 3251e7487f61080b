"""What the kill run has that fits here, too: its AgentLoop client, a session's record, and how the
two are compared, character by character.
"""

import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "soak"))

import record as records  # noqa: E402
from check import compare  # noqa: E402
from recorder import Recorder, Return, Shown, Visit  # noqa: E402

__all__ = ["Recorder", "Return", "Shown", "Visit", "compare", "records"]
