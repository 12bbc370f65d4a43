"""Whether each marker and each diff is proven by what the model was shown."""
