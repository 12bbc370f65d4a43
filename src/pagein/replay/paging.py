"""pagein itself as a policy of the replay: the real engine, the real store, byte for byte.

The engine is fed the recorded messages and decides; the ledger prices what it decided. Every request is checked as a
provider would check it, and in the end everything that was paged out is recalled and compared with the original.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.replay.growth import Sized
from pagein.replay.ledger import NOTHING, Hide, Ledger, Recall, Removable
from pagein.replay.recording import Recording
