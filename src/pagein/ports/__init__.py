"""Interfaces to the outside world, as Protocols whose docstrings are contracts."""

from pagein.ports.child_models import ChildAnswer, ChildModel, ChildRequest, ChildTool, PrefixMark
from pagein.ports.hosts import HOOK_LOSSES, Hook, HookLoss, HostAdapter
from pagein.ports.layers import DerivedLayer, Progress
from pagein.ports.layouts import Layout
from pagein.ports.machine import Clock, CodeSearcher, Files, IdSource, Signal, TokenCounter
from pagein.ports.stores import BlobStore, JournalStore, LayerStore, ObjectStore, SnapshotStore
from pagein.ports.symbols import SymbolCache, SymbolSource
from pagein.ports.whole_stores import ForgettingStore, WholeStore

__all__ = [
    "HOOK_LOSSES",
    "BlobStore",
    "ChildAnswer",
    "ChildModel",
    "ChildRequest",
    "ChildTool",
    "Clock",
    "CodeSearcher",
    "DerivedLayer",
    "Files",
    "ForgettingStore",
    "Hook",
    "HookLoss",
    "HostAdapter",
    "IdSource",
    "JournalStore",
    "LayerStore",
    "Layout",
    "ObjectStore",
    "PrefixMark",
    "Progress",
    "Signal",
    "SnapshotStore",
    "SymbolCache",
    "SymbolSource",
    "TokenCounter",
    "WholeStore",
]
