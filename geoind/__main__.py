"""`python -m geoind` is the command line."""

from geoind.cli import main

raise SystemExit(main())
