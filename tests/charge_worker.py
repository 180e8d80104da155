"""A process that charges a ledger and says so after each answer; tests start several and kill some."""

import sys
from datetime import timedelta

from geoind import BudgetExceededError, Ledger

if __name__ == "__main__":
    url, budget, hours, person, epsilon, count = sys.argv[1:]
    window = timedelta(hours=float(hours)) if float(hours) else None
    ledger = Ledger(url, budget=float(budget), window=window, timeout=60)
    for _ in range(int(count)):
        try:
            ledger.charge(person, float(epsilon))
        except BudgetExceededError:
            print("refused", flush=True)
        else:
            print("charged", flush=True)
