from .ledger import Charge as Charge
