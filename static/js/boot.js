// Runs before the first paint: says that scripts run, and sets the theme so that the other one does
// not flash. Who is signed in has the account's theme, already on the page; this device remembers it
// for the pages before sign-in. A choice that has not reached the server yet goes first.
(() => {
  const root = document.documentElement;
  root.dataset.script = "";
  try {
    const hasAccount = "account" in root.dataset;
    const unsaved = localStorage.getItem("mira.theme.unsaved");
    if (hasAccount && !unsaved) localStorage.setItem("mira.theme", root.dataset.theme ?? "auto");
    const theme = hasAccount ? unsaved : localStorage.getItem("mira.theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else if (theme === "auto") delete root.dataset.theme;
  } catch {
    // Storage is off: what the page says, or the device's own wish, decides.
  }
})();
