// The theme: the system's, light or dark; remembered.
import { signal } from "@preact/signals";
import { html } from "./html.js";

const MARKS = { auto: "◐", light: "○", dark: "●" };

export const theme = signal(document.documentElement.dataset.theme ?? "auto");

export function nextTheme() {
  const names = Object.keys(MARKS);
  theme.value = names[(names.indexOf(theme.value) + 1) % names.length];
  if (theme.value === "auto") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem("muster-theme");
  } else {
    document.documentElement.dataset.theme = theme.value;
    localStorage.setItem("muster-theme", theme.value);
  }
}

export function ThemeButton() {
  const name = `Theme: ${theme.value}`;
  return html`<button class="icon" aria-label=${name} title=${`${name} (t)`} onClick=${nextTheme}>${MARKS[theme.value]}</button>`;
}
