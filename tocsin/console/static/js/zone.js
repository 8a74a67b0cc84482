// The zone of this machine, for times on the pages: sent once, as a cookie that the person can change.

export function sendZone() {
  if (!document.body.hasAttribute("data-zone-unknown")) return;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone || document.cookie.includes("tocsin-zone=")) return;
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `tocsin-zone=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax${secure}`;
  if (zone !== document.body.dataset.zone) location.reload();
}
