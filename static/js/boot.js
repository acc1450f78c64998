// Runs before the first paint: says that scripts run, and sets a chosen theme so that the other one
// does not flash.
document.documentElement.dataset.script = "";
try {
  const theme = localStorage.getItem("mira.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is off: the device's own wish decides.
}
