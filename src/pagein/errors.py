"""Every exception, grouped by the party who must act.

```
PageinError
├── CallerError            the request cannot be fulfilled; the message says what to change
│   ├── BadName            malformed name: text of another kind than expected
│   ├── BadInput           unusable file or argument; the message names file and line
│   │   └── NoSession      a readable file without a recorded session
│   ├── BadSetting         setting or option with a value outside its range
│   ├── NotRecallable      missing object; the message says why
│   └── AbortedOperation   the caller cancelled the work
├── HostError              the host broke a contract
├── ChildModelError        a child model could not be called; the message says what to do
│   ├── RefusedKey         the provider refused the key
│   ├── UnknownModel       the provider has no model of this name
│   ├── OverloadedProvider too many requests, or no capacity; a later call may succeed
│   ├── BrokenConnection   no connection, or it ended early; a second call may succeed
│   ├── UnsupportedCall    the model has no such call; a streaming call may succeed
│   └── RefusedRequest     the provider refused the request for another reason
└── StoreError             the store failed; no model call may fail because of this
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


class AbortedOperation(CallerError):
    """The caller cancelled the work while in progress."""


class HostError(PageinError):
    """The host broke a promise. The message names the host and the promise."""


class ChildModelError(PageinError):
    """A child model could not be called. The message names the provider's reason and the remedy, and no key."""


class RefusedKey(ChildModelError):
    """The provider refused the key, or no key is set. The message names the variable to set."""


class UnknownModel(ChildModelError):
    """The provider has no model of this name."""


class OverloadedProvider(ChildModelError):
    """The provider has too many requests or no capacity (429, 503, 529).

    retry_after: seconds that the provider asks to wait, None if it does not say.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BrokenConnection(ChildModelError):
    """No connection to the provider, or it ended before the answer was complete.

    was_sent: whether the provider may bill the call: the request may have reached it, and it did not answer with an error.
    """

    def __init__(self, message: str, *, was_sent: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class UnsupportedCall(ChildModelError):
    """The model cannot be called in this way. A streaming call may succeed."""


class RefusedRequest(ChildModelError):
    """The provider refused the request for a reason that a second call does not change."""


class StoreError(PageinError):
    """The store failed. Callers continue without the store (law 7)."""


class MissingBlob(StoreError):
    """The store has no bytes under this hash."""


class DamagedBlob(StoreError):
    """The bytes under this hash differ from the stored bytes."""
