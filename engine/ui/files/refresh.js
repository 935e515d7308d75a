// The page asks for itself every two seconds while somebody looks at it, and shows what is new. If the answer does not come,
// it says that it is not up to date, and asks again.
"use strict";

const every = 2000;

async function refresh() {
  if (document.hidden) return;
  const stale = document.getElementById("stale");
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
    const main = document.querySelector("main");
    if (next && next.innerHTML !== main.dataset.was) {
      const picture = main.querySelector("img");
      main.dataset.was = next.innerHTML;
      main.innerHTML = next.innerHTML;
      const fresh = main.querySelector("img");
      if (fresh && picture) fresh.src = fresh.getAttribute("src") + "?" + Date.now();
    }
    stale.hidden = true;
  } catch {
    stale.hidden = false;
  }
}

document.querySelector("main").dataset.was = document.querySelector("main").innerHTML;
setInterval(refresh, every);
