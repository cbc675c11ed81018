"""From a prepared corpus to batches: streams, mixture, planner, packing, builder, loader.

    streams --> mixture (draws) --> planner (lengths, packing) --> builder (rows) --> loader

A draw is an example of a stream. The planner places draws from the length index alone; loader
workers then read the examples and let the objectives build their sequences. No models here.
"""
