"""The same bits on every device: cases, a program that runs them on one device, and tests that compare devices."""
