"""The test kit shipped with pagein: conformance suites, in-memory stores and session scripts."""
