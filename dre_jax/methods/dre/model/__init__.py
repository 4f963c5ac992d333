"""The model of Deep Ranking Ensembles: its sizes, its parameters and its scores."""
