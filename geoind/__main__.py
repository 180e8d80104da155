"""The program `geoind`, which is `python -m geoind` too."""

import sys

from geoind.cli import main


class _WithoutPandas:
    """An importer that finds no pandas.

    pyarrow imports pandas, if there is one, with its first array. That takes as long as the reports of a million
    rows, and no file needs it. Only the program does this, never the library.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:  # noqa: ARG004
        if name == "pandas":
            raise ModuleNotFoundError(f"{name} is not needed", name=name)


# Also in worker processes, which import this module and have the same arguments.
if sys.argv[1:2] == ["obfuscate"] and "pandas" not in sys.modules:
    sys.meta_path.insert(0, _WithoutPandas)

if __name__ == "__main__":
    raise SystemExit(main())
