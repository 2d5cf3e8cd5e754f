"""The same bits on every device: cases, what runs them on one device, and tests that compare devices."""
