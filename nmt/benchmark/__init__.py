"""Measure speed and memory on this machine.

    python -m nmt.benchmark train                                     # three models, the machine's best precision
    python -m nmt.benchmark train --models T R --precision fp32 bf16 --prepared data/cache/multi30k_de-en-...
    python -m nmt.benchmark train --models multi30k_transformer --set training.batch_tokens=2048
    python -m nmt.benchmark memory                                    # peak memory against what it may depend on
    python -m nmt.benchmark translate --checkpoint runs/X --input test.de --reference test.en --precision fp32 bf16
    python -m nmt.benchmark translate                                 # three models of random parameters
    python -m nmt.benchmark translate --lengths 16 32 64 128 256      # what a token costs as sentences grow
    python -m nmt.benchmark scaling --figure scaling.png              # cost against length: exponents, crossings
    python -m nmt.benchmark paths                                     # how far words are from each other

    torchrun --standalone --nproc-per-node 2 -m nmt.benchmark train --device cpu --threads 1     # several processes

Tables go to stdout, progress to stderr. Compare figures of one call only: neighbours on a machine move everything.
"""
