"""AdamW, LAMB and Muon with their schedules, in less memory if asked, and averages of weights."""
