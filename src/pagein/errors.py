"""Every exception, named by who must act.

```
PageinError
├── CallerError      what was asked for cannot be; the message says what to change
│   ├── BadName          text that is not the name it claims to be
│   ├── BadInput         a file or argument that cannot be used; names file and line
│   ├── BadSetting       a setting or option with a value outside its range
│   ├── NotRecallable    an object that is gone, and why
│   └── Aborted          the caller called it off
├── HostError        the host broke its side of a contract
└── StoreError       our own disk let us down; no model call may fail because of it
    ├── MissingBlob
    └── DamagedBlob
```

Anything else that is raised is a bug: loud in tests, the fallback of law 7 in production.
"""


class PageinError(Exception):
    """Root of everything pagein raises on purpose."""


class CallerError(PageinError):
    """The caller asked for something that cannot be had. The message says what to change."""


class BadName(CallerError):
    """Text that is not the kind of name it was given as."""


class BadInput(CallerError):
    """A file or an argument that cannot be used. The message names the file, the line where known, and the remedy."""


class BadSetting(CallerError):
    """A setting or command-line option outside its range. The message names it and what it takes."""


class NotRecallable(CallerError):
    """An object that cannot be recalled. The message tells expired, never existed and foreign apart."""


class Aborted(CallerError):
    """The caller called the work off while it was being done."""


class HostError(PageinError):
    """The host broke a promise. The message names the host and the promise."""


class StoreError(PageinError):
    """The store failed. Whoever catches this goes on without it (law 7)."""


class MissingBlob(StoreError):
    """The store has no bytes under this hash."""


class DamagedBlob(StoreError):
    """The bytes under this hash are not the ones that were put there."""
