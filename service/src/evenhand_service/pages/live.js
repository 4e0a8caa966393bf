// Keeps the page fresh: fetches the part that changes, and leaves focus and open details as they were.
"use strict";
const EVERY = 2000;

async function refresh() {
  if (document.hidden) return;
  const here = document.getElementById("live");
  const answer = await fetch("/dashboard/live" + window.location.search, { credentials: "same-origin" });
  if (!answer.ok || answer.redirected) return;
  const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
  const open = [...here.querySelectorAll("details[open]")].map((one) => one.id);
  const focused = here.contains(document.activeElement) && document.activeElement.closest("details");
  here.replaceChildren(...parsed.body.childNodes);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused) document.getElementById(focused.id)?.querySelector("summary")?.focus();
}

setInterval(() => refresh().catch(() => {}), EVERY);
