"""What leaves the window, what stays in it and what comes back."""
