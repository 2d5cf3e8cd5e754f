"""Code beside that of weft's own launches: made for other programs, linked from elsewhere, and shown."""
