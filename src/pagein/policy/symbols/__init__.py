"""Decisions about symbols: which definition a name means, which files a map shows first, and what it shows of them."""
