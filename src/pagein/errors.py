"""Every exception, grouped by the party who must act.

```
PageinError
├── CallerError      the request cannot be fulfilled; the message says what to change
│   ├── BadName          malformed name: text of another kind than expected
│   ├── BadInput         unusable file or argument; the message names file and line
│   │   └── NoSession        a readable file without a recorded session
│   ├── BadSetting       setting or option with a value outside its range
│   ├── NotRecallable    missing object; the message says why
│   └── Aborted          the caller cancelled the work
├── HostError        the host broke a contract
└── StoreError       the store failed; no model call may fail because of this
    ├── MissingBlob
    └── DamagedBlob
```

Any other exception is a bug: tests fail loudly, production uses the fallback (law 7).
"""


class PageinError(Exception):
    """Base class of every exception that pagein raises deliberately."""


class CallerError(PageinError):
    """The caller's request cannot be fulfilled. The message says how to change the request."""


class BadName(CallerError):
    """A malformed name: the text is not the kind of name expected."""


class BadInput(CallerError):
    """An unusable file or argument. The message names the file, the line where known, and the remedy."""


class NoSession(BadInput):
    """A readable file without a recorded session."""


class BadSetting(CallerError):
    """A setting or command-line option outside its range. The message names the setting and the accepted values."""


class NotRecallable(CallerError):
    """An object that cannot be recalled. The message distinguishes expired, unknown and foreign objects."""


class Aborted(CallerError):
    """The caller cancelled the work while in progress."""


class HostError(PageinError):
    """The host broke a promise. The message names the host and the promise."""


class StoreError(PageinError):
    """The store failed. Callers continue without the store (law 7)."""


class MissingBlob(StoreError):
    """The store has no bytes under this hash."""


class DamagedBlob(StoreError):
    """The bytes under this hash differ from the stored bytes."""
