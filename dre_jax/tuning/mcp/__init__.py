"""Studies in a folder as tools of the Model Context Protocol: what ``dre-jax mcp`` serves."""
