"""Methods to compare with: a file a method, and the mathematics that some of them share."""
