"""The engine of suggestions: what precedes the method, what a model learns beside it, and its call."""
