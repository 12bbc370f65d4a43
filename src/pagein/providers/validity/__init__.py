"""What providers refuse: rules as data, and the checker that applies them."""

from pagein.providers.validity.checking import Checker, Violation, check_body, check_messages
from pagein.providers.validity.rules import RULES, Api, Rule

__all__ = ["RULES", "Api", "Checker", "Rule", "Violation", "check_body", "check_messages"]
