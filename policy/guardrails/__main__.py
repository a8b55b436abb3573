"""`python -m guardrails FILE...`; see `guardrails.check`."""

import sys

from guardrails.check import main

sys.exit(main())
