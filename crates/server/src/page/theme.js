// Sets the theme that was chosen here before the first picture is drawn.
//
// Loaded in the head, before everything else, so that no page flashes white. Knows nothing else.

(() => {
  try {
    const theme = localStorage.getItem('polyloop.theme');
    if (theme === '"light"' || theme === '"dark"') {
      document.documentElement.dataset.theme = JSON.parse(theme);
    }
  } catch {
    // A browser that keeps nothing shows the system's theme.
  }
})();
