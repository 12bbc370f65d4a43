"""What a read is answered with, by what the model knows of the file."""
