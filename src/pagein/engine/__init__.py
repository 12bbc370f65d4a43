"""Sessions at work: the journal, its fold, what is rendered for a call, and recall."""
