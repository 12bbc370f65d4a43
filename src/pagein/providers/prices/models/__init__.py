"""The models of each vendor: prices and abilities by date, other names, and the kinds of their caches."""
