"""Pure decisions: state and facts in, a decision out, without I/O, clock or memory."""
