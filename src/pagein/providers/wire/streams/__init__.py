"""Model answers: the events of a stream, the reply with its turns, and the merge of several streams."""
