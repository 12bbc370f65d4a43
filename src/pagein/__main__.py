"""The command line, also as `python -m pagein`."""

import gc

gc.disable()  # a short command spends a tenth of its time on looking for garbage among modules

from pagein.cli.cli import main  # noqa: E402

gc.freeze()
gc.enable()

if __name__ == "__main__":
    main()
