"""Systems set side by side. ``tree`` says what a comparison holds; ``build`` measures it, from the runs on disk
(``runs``) and their evaluations; ``markdown`` and ``page`` show it.
"""
