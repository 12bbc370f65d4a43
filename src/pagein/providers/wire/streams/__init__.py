"""Model answers: the events of a stream, the reply read from them, its turns, and the merge of several streams."""
