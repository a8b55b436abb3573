"""`python -m training.preflight` under any launcher, with or without the configuration of a run; exits as the trainer does.

python -m training.supervise --nproc-per-node 8 -m training.preflight --set preflight.transport=efa
"""

import sys

from training.command import leave
from training.preflight.command import main

if __name__ == "__main__":
    leave(main(sys.argv[1:]))
