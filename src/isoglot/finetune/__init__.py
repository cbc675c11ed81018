"""Fine-tuning encoders on tasks, across languages: transformers' Trainer and heads, our scenarios.

task, scenario, protocol, seeds --run--> trainings --predict--> scores
"""
