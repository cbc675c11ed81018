"""`isoglot adapt`: an encoder, text and translations in; a better encoder and the proof out.

look (encoder, data, machine) --> plan --> prepare, grow, train --> score before and after
"""
