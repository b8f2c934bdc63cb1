"""What agents took: transcripts, the ledger made of them, prices and reports."""
