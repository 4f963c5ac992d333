"""HPO-B from the web: fetched, checked, and only then put in place."""
