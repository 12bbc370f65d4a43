"""The bytes that go out: pagein's changes spliced into the client's bytes and checked; the choice after a failure."""
