// Buttons that have just come can't be pressed by a click or key that was meant for something else.
import { useEffect, useState } from "preact/hooks";

/** True once `what` has been on a visible page for so long. */
export function useArmed(what, ms) {
  const [armed, setArmed] = useState(null);
  useEffect(() => {
    let timer = 0;
    const arm = () => {
      clearTimeout(timer);
      setArmed(null);
      if (!document.hidden) timer = setTimeout(() => setArmed(what), ms);
    };
    arm();
    document.addEventListener("visibilitychange", arm);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", arm);
    };
  }, [what]);
  return armed === what;
}
