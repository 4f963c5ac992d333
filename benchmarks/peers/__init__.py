"""The peers in PyTorch, and what they compute of fixed weights and lists."""
