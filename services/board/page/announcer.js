// The polite live region: new questions and what became of actions, not every update.
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}
