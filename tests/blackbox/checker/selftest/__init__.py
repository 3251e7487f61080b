"""Good transcripts, one a file of good/, and the faults that must be found in them."""
