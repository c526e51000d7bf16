"""The reversal ablation as a report: runs that differ in nothing but ``model.reverse_source``, set against each other.

Sutskever, Vinyals and Le (2014, section 3.3) found that their fixed-vector model does better when it reads the source
backwards, and explain it by the *minimal time lag*: on average words lie as far from their translations as before, but
the first ones lie next to them, so that optimisation finds a hold. If that is the reason, the gain should vanish for a
decoder that reads every position (attention), and should follow the lag where the word order of the target changes.

``tree`` says what is held, ``build`` measures it from runs, ``sections`` show it.
"""
