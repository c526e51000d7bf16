"""The four reserved subword ids, the same in every tokenizer this project trains.

``data/tokenizer.py`` asks SentencePiece for exactly these ids and checks them whenever a model file is loaded, so that
every other file may use the constants.
"""

PAD = 0
UNK = 1
BOS = 2
EOS = 3
