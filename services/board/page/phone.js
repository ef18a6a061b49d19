// Whether the page is one column: the same width as in the style sheet.
export const phone = matchMedia("(max-width: 700px)");
