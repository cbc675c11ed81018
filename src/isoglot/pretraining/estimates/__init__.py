"""What a run will take, before it starts: rows at a time, time, memory, disk, passes over data."""
