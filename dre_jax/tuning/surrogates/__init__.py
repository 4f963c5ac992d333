"""Surrogates: what a method learned from past studies, its checkpoint, and which past studies helped."""
