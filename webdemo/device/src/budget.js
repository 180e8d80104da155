// The privacy budget of each person or site, kept in a storage with getItem and setItem, such as localStorage.

import { asPerson, asPositive } from "./checks.js";

const UNITS = 1e15; // charges are whole units of 1e-15 per metre, so that they add up exactly
const LARGEST = 9; // per metre: more units would not be exact
const SLACK = 1 + 1e-9; // so that a budget of 10 * epsilon pays for ten reports

/** @typedef {{ getItem(name: string): string | null, setItem(name: string, value: string): void }} Storage */
/** @typedef {{ spent: Record<string, number>, paid: Record<string, string[]>, sessions: Record<string, string> }} Account */

/** A budget does not pay for a report: nothing was charged and nothing was drawn. */
export class BudgetExceededError extends Error {
  /** @param {string} person @param {number} requested @param {number} remaining */
  constructor(person, requested, remaining) {
    super(`the budget has ${remaining} per metre left, and ${requested} are needed`);
    this.name = "BudgetExceededError";
    this.person = person;
    this.requested = requested;
    this.remaining = remaining;
  }
}

/** @param {number} epsilon @param {string} name */
function asUnits(epsilon, name) {
  if (asPositive(epsilon, name) > LARGEST)
    throw new RangeError(`${name} must be at most ${LARGEST} per metre, got ${epsilon}`);
  return Math.ceil(epsilon * UNITS);
}

/** @param {readonly number[]} costs */
const unitsOf = (costs) => costs.reduce((sum, cost) => sum + asUnits(cost, "epsilon"), 0);

/** What persons, or sites, may spend, and what they have spent. */
export class Budget {
  #storage;
  #name;
  #each;
  #total;

  /** A budget for each person (or site), and optionally one for all of them together.
   *
   * Everything is one item of the storage, and written at once: a charge and the state of the session that it pays for are
   * stored together or not at all. Two tabs that write at the same time need a lock, such as `navigator.locks`.
   *
   * @param {Storage} storage
   * @param {object} options
   * @param {number} options.epsilon per metre, what each person may spend
   * @param {number} [options.total] per metre, what all persons may spend together
   * @param {string} [options.name] of the storage's item
   */
  constructor(storage, { epsilon, total, name = "geoind budget" }) {
    if (typeof storage?.getItem !== "function" || typeof storage?.setItem !== "function")
      throw new TypeError("storage must have getItem and setItem, as localStorage has");
    this.#storage = storage;
    this.#name = String(name);
    this.#each = asUnits(epsilon, "epsilon");
    this.#total = total === undefined ? Infinity : asUnits(total, "total");
    this.#read();
  }

  /** What a person has spent, per metre.
   * @param {string | number} person */
  spent(person) {
    return this.#spent(this.#read(), asPerson(person)) / UNITS;
  }

  /** What all persons have spent, per metre. */
  get totalSpent() {
    return sumOf(this.#read()) / UNITS;
  }

  /** What a person may still spend, per metre.
   * @param {string | number} person */
  remaining(person) {
    return Math.max(0, this.#remaining(this.#read(), asPerson(person))) / UNITS;
  }

  /** Charge a person, or throw a BudgetExceededError; the same `once` is charged once.
   * @param {string | number} person
   * @param {number} epsilon per metre
   * @param {{ once?: string }} [options]
   */
  charge(person, epsilon, { once } = {}) {
    const [name, account] = [asPerson(person), this.#read()];
    if (once !== undefined) {
      if (typeof once !== "string") throw new TypeError("once must be text");
      const paid = account.paid[name] ?? [];
      if (paid.includes(once)) return;
      account.paid[name] = [...paid, once];
    }
    this.#pay(account, name, [epsilon]);
    this.#write(account);
  }

  /** Run a step of a session: from its stored state to its charges and its next state, which are stored together.
   *
   * @param {string | number} person
   * @param {string} tag names the session's key
   * @param {readonly number[]} most the charges of the most expensive step
   * @param {(state: string | null, reserve: () => void) => { state: string, paid: readonly number[] } | null} step calls
   * `reserve` before it draws, which throws unless `most` can be paid; returns null if nothing changes
   */
  step(person, tag, most, step) {
    const [name, account] = [asPerson(person), this.#read()];
    const place = `${tag} ${name}`;
    const stored = Object.hasOwn(account.sessions, place) ? account.sessions[place] : null;
    const taken = step(stored, () => this.#reserve(account, name, most));
    if (!taken) return;
    this.#pay(account, name, taken.paid);
    account.sessions[place] = taken.state;
    this.#write(account);
  }

  /** The stored state of a person's session, or null.
   * @param {string | number} person
   * @param {string} tag */
  session(person, tag) {
    const { sessions } = this.#read();
    const place = `${tag} ${asPerson(person)}`;
    return Object.hasOwn(sessions, place) ? sessions[place] : null;
  }

  /** Delete what is stored about a person: what was spent, too.
   * @param {string | number} person */
  forget(person) {
    const [name, account] = [asPerson(person), this.#read()];
    delete account.spent[name];
    delete account.paid[name];
    for (const place of Object.keys(account.sessions)) if (place.slice(33) === name) delete account.sessions[place];
    this.#write(account);
  }

  /** @param {Account} account @param {string} name */
  #spent(account, name) {
    return Object.hasOwn(account.spent, name) ? account.spent[name] : 0;
  }

  /** @param {Account} account @param {string} name */
  #remaining(account, name) {
    return Math.min(this.#each - this.#spent(account, name), this.#total - sumOf(account));
  }

  /** @param {Account} account @param {string} name @param {readonly number[]} costs */
  #reserve(account, name, costs) {
    const needed = unitsOf(costs);
    const isEnough =
      this.#spent(account, name) + needed <= this.#each * SLACK && sumOf(account) + needed <= this.#total * SLACK;
    if (isEnough) return;
    throw new BudgetExceededError(name, needed / UNITS, Math.max(0, this.#remaining(account, name)) / UNITS);
  }

  /** @param {Account} account @param {string} name @param {readonly number[]} costs */
  #pay(account, name, costs) {
    this.#reserve(account, name, costs);
    account.spent[name] = this.#spent(account, name) + unitsOf(costs);
  }

  /** @returns {Account} */
  #read() {
    const stored = this.#storage.getItem(this.#name);
    // Objects without a prototype: a person may be called "constructor".
    const empty = { spent: Object.create(null), paid: Object.create(null), sessions: Object.create(null) };
    if (stored === null || stored === undefined) return empty;
    try {
      const { spent, paid, sessions } = JSON.parse(stored);
      if (!Object.values(spent).every((units) => Number.isSafeInteger(units) && units >= 0)) throw new RangeError();
      if (
        !Object.values(paid).every((tokens) =>
          tokens.every((/** @type {unknown} */ token) => typeof token === "string"),
        )
      )
        throw new RangeError();
      if (!Object.values(sessions).every((state) => typeof state === "string")) throw new RangeError();
      return {
        spent: Object.assign(empty.spent, spent),
        paid: Object.assign(empty.paid, paid),
        sessions: Object.assign(empty.sessions, sessions),
      };
    } catch {
      throw new RangeError(`the item ${JSON.stringify(this.#name)} of the storage is not a budget`);
    }
  }

  /** @param {Account} account */
  #write(account) {
    this.#storage.setItem(this.#name, JSON.stringify(account));
  }
}

/** @param {Account} account */
const sumOf = (account) => Object.values(account.spent).reduce((sum, units) => sum + units, 0);
