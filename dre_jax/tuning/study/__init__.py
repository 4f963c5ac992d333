"""Studies: ask and tell, the record of trials, the file of a study."""
