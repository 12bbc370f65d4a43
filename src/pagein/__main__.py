"""`python -m pagein`: the command line."""

from pagein.cli.cli import main

if __name__ == "__main__":
    main()
