"""Parts of the scripts that repeat the papers' own small experiments."""
