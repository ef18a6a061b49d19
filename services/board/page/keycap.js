// A small picture of a key, for the eye only: the button's name says the rest.
import { html } from "./html.js";

export const Keycap = ({ children }) => html`<kbd aria-hidden="true">${children}</kbd>`;
