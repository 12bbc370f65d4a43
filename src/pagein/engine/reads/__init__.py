"""What the model was shown of files, and what a new read may answer because of it."""
