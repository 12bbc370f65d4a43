"""The kit that ships with pagein: conformance suites, in-memory twins and session scripts."""
