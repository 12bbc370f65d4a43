"""What providers accept, cache, count and charge: rules as dated data, and the pure functions over them."""
