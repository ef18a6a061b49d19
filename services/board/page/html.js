// Markup as tagged templates: every value becomes a text node or a property, never HTML.
import { h } from "preact";
import htm from "htm";

export const html = htm.bind(h);
