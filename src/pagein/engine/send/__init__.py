"""The bytes of a request that goes out: the client's own, with our changes spliced in and checked."""
