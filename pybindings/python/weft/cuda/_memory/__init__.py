"""Arrays in the device's memory and in memory that both reach: how they are made, and what they can do."""
