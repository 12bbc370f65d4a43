"""The command line, also as `python -m pagein`."""

import gc
import signal

gc.disable()  # a short command spends a tenth of its time on looking for garbage among modules
if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C among the imports would print where they were

from pagein.cli.cli import main  # noqa: E402

gc.freeze()
gc.enable()

if __name__ == "__main__":
    main()
