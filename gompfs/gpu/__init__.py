"""Everything that runs on a GPU, except the choice of it: decoding, cutting words, building and traversing grammars."""
