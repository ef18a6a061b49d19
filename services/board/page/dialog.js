// A modal window: the browser's own, which traps the focus, closes on Escape and gives the focus back.
import { useEffect, useRef } from "preact/hooks";
import { html } from "./html.js";
import { Keycap } from "./keycap.js";

export function Dialog({ title, onClose, children }) {
  const element = useRef();
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog.showModal();
    return () => {
      dialog.close();
      before?.focus?.();
    };
  }, []);
  const closeOnBackdrop = (event) => { if (event.target === element.current) onClose(); };
  const closeOnEscape = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${element} aria-label=${title} onCancel=${closeOnEscape} onClick=${closeOnBackdrop}>
    <div class="dialog-body">
      <div class="dialog-head">
        <h2>${title}</h2><button class="plain" aria-label="Close" onClick=${onClose}><${Keycap}>esc</${Keycap}></button>
      </div>
      ${children}
    </div>
  </dialog>`;
}
