"""Studies: ask and tell, trials and their record, the file of a study."""
