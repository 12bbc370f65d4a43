"""What people look at: tables in a terminal and a page in a browser, from plain values."""
