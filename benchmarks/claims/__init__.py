"""Which claims of the papers hold: arms from one shared checkpoint, with a control and seeds."""
