"""A job in which files are written, edited, renamed and deleted, in a conversation that is forked and compacted.

Each line of a file has a word that no other line has, so that a line says by itself where it came from.
"""

from typing import Final

from tests.agents.jobs import (
    DeleteStep,
    EditStep,
    FillStep,
    Job,
    JobPrompt,
    MoveStep,
    ReadStep,
    Run,
    SayStep,
    WriteStep,
)

MAIN: Final = "main"
FORK: Final = "fork"
_FULL: Final = 990_000
"""More tokens than any window has."""


def _lines(word: str, count: int) -> str:
    return "".join(f"def {word}_{number}(): return {number}\n" for number in range(1, count + 1))


def memory_job(name: str) -> Job:
    """The job of one agent. name: of its folder in the workspace, and the beginning of the names of its prompts.

    The prompts `NAME-1`, `NAME-2` and `NAME-3` are one conversation, `NAME-fork` goes on with a fork of it after `NAME-1`.
    """
    cart, tax, plan, notes = (f"{name}/{one}" for one in ("cart.py", "tax.py", "plan.md", "notes.md"))
    old, names, labels, sums = (f"{name}/{one}" for one in ("old.py", "names.py", "labels.py", "sums.py"))
    return Job(
        f"memory of {name}",
        {
            cart: _lines("cart", 12),
            plan: "# Plan\n\nThe first step.\nThe second step.\n",
            old: _lines("old", 4),
            names: f"NAMES = 1\n{_lines('names', 5)}",
            sums: _lines("sums", 6),
        },
        (
            JobPrompt(
                f"{name}-1",
                f"Write the total of the basket for {name}.",
                (
                    (ReadStep(cart), ReadStep(plan)),
                    (
                        EditStep(cart, "def cart_3(): return 3", "def total_a(): return 3\ndef total_b(): return 33"),
                        WriteStep(tax, _lines("tax", 5)),
                    ),
                    (EditStep(plan, "The first step.", "The first step is done, says amaranth."), Run(f"cat {tax}")),
                    (EditStep(cart, "def no_such_line(): return 0", "def never_written(): return 0"),),
                    (SayStep(f"The total stands, says bergamot of {name}."),),
                ),
            ),
            JobPrompt(
                f"{name}-fork",
                f"Try it with another rate, {name}.",
                (
                    (ReadStep(cart),),
                    (EditStep(cart, "def cart_10(): return 10", "def forked(): return 10"),),
                    (WriteStep(notes, "# Notes\n\nThe rate is low, see [[plan]].\n"), Run("echo chervil")),
                    (SayStep("Another rate it is."),),
                ),
            ),
            JobPrompt(
                f"{name}-2",
                f"Tidy the names up, {name}.",
                (
                    (ReadStep(names), ReadStep(old)),
                    (MoveStep(names, labels), DeleteStep(old)),
                    (ReadStep(labels),),
                    (EditStep(labels, "def names_2(): return 2", "def label_2(): return 2"),),
                    (Run(f"sed -i 's/cart_6/by_command_6/' {cart}"),),
                    (EditStep(cart, "def cart_12(): return 12", "def unseen_base(): return 12"),),
                    (ReadStep(cart, 2, 3), ReadStep(sums)),
                    (EditStep(sums, "def sums_2(): return 2", "def summed(): return 2"),),
                    (SayStep("It is tidy."), FillStep(_FULL)),
                ),
            ),
            JobPrompt(
                f"{name}-3",
                f"Add the discount, {name}.",
                (
                    (ReadStep(cart), ReadStep(tax)),
                    (
                        EditStep(cart, "def cart_8(): return 8", "def discount(): return 8"),
                        EditStep(tax, "def tax_2(): return 2", "def taxed(): return 2"),
                    ),
                    (Run(f"mv {tax} {name}/duty.py && echo '# moved' >> {name}/duty.py"),),
                    (SayStep("The discount is in."),),
                ),
            ),
        ),
    )
