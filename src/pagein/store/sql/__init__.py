"""Code shared by the SQL stores."""
