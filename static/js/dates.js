// Dates as a person says them, in the browser's zone.
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const WEEKDAY = new Intl.DateTimeFormat(undefined, { weekday: "long" });
const DAY = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const DAY_OF_YEAR = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long", year: "numeric" });
const MONTH = new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric" });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "short" });
const MS_PER_DAY = 86_400_000;

function midnight(date) {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate());
}

/** A key that is equal for two moments of one local day. */
export function dayKey(date) {
  return `${date.getFullYear()}-${date.getMonth() + 1}-${date.getDate()}`;
}

/** "Today", "Yesterday", "Tuesday", "Tuesday, 3 March", "3 March 2024". */
export function dayLabel(date, now = new Date()) {
  const days = Math.round((midnight(now) - midnight(date)) / MS_PER_DAY);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days > 1 && days < 6) return WEEKDAY.format(date);
  return date.getFullYear() === now.getFullYear() ? DAY.format(date) : DAY_OF_YEAR.format(date);
}

export function monthLabel(date) {
  return MONTH.format(date);
}

export function clock(date) {
  return CLOCK.format(date);
}

export function fullDate(date) {
  return FULL.format(date);
}
