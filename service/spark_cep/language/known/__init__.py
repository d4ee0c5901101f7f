"""Knowledge beside the text: types of events, keys of documents, functions, checks."""
