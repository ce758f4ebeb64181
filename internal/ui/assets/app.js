"use strict";
// Updates the page after server-sent events: it fetches the same page again and changes only the nodes that differ, so that
// focus, scroll position, open details and the text of inputs remain.
(() => {
  const quiet = 500;
  const live = document.getElementById("live");
  // Delays before the next connection, in milliseconds.
  const firstDelay = 2000, longestDelay = 30000;
  // The last change that the page has received, and the open stream of further changes.
  let position = document.body.dataset.position, stream = null, reconnect = 0, delay = firstDelay;
  // The clock of the server may differ from the clock of the browser.
  const skew = Date.now() - Date.parse(document.body.dataset.now);
  let busy = false, again = false, timer = 0, ended = false;
  // The delay after the last failed update, in milliseconds; 0 if it did not fail.
  let failure = 0;

  function setLive(state, text) {
    live.dataset.state = state;
    if (live.textContent !== text) live.textContent = text;
  }

  // showLive reports whether the page is up to date. The server may be reachable although the management cluster is not.
  function showLive() {
    const stale = document.getElementById("main").dataset.stale;
    if (failure) setLive("off", "Update failed");
    else if (stale) setLive("off", "Not live. " + stale);
    else setLive("on", "Live");
  }

  // sync makes the attributes of a node those of another. The state that the reader has changed remains.
  function sync(node, next) {
    for (const a of Array.from(node.attributes)) {
      if (!next.hasAttribute(a.name) && !(node.nodeName === "DETAILS" && a.name === "open") && a.name !== "data-seen") node.removeAttribute(a.name);
    }
    for (const a of Array.from(next.attributes)) {
      if (node.nodeName === "DETAILS" && a.name === "open") continue;
      if (node.getAttribute(a.name) !== a.value) node.setAttribute(a.name, a.value);
    }
  }

  // morph changes a node into another of the same name. Children with an ID are moved instead of replaced.
  function morph(node, next) {
    if (node.isEqualNode(next)) return;
    sync(node, next);
    const known = new Map();
    for (const child of node.children) if (child.id) known.set(child.id, child);
    let at = node.firstChild;
    for (const child of Array.from(next.childNodes)) {
      const id = child.nodeType === 1 ? child.id : "";
      let match = id ? known.get(id) : at;
      if (match && (match.nodeType !== child.nodeType || match.nodeName !== child.nodeName || (!id && match.id))) match = null;
      if (!match) {
        node.insertBefore(document.importNode(child, true), at);
        continue;
      }
      known.delete(id);
      if (match === at) at = at.nextSibling;
      else node.insertBefore(match, at);
      if (match.nodeType !== 1) {
        if (match.nodeValue !== child.nodeValue) match.nodeValue = child.nodeValue;
      } else morph(match, child);
    }
    while (at) {
      const rest = at.nextSibling;
      at.remove();
      at = rest;
    }
  }

  function isSelecting() {
    const s = document.getSelection();
    return s && !s.isCollapsed && document.getElementById("main").contains(s.anchorNode);
  }

  async function refresh(force) {
    if (busy || (!force && (document.hidden || isSelecting()))) {
      again = true;
      return;
    }
    busy = true;
    again = false;
    const began = performance.now();
    try {
      const response = await fetch(location.pathname + location.search, { credentials: "same-origin" });
      if (response.status === 401) {
        ended = true;
        setLive("off", "Session ended");
        return;
      }
      const next = new DOMParser().parseFromString(await response.text(), "text/html");
      if (!next.getElementById("main")) throw new Error("not a page"); // for example an error of a proxy
      if (!force && isSelecting()) { // since the request was sent
        again = true;
        return;
      }
      failure = 0;
      const focused = document.activeElement;
      for (const id of ["tabs", "views", "main"]) {
        morph(document.getElementById(id), next.getElementById(id));
      }
      document.title = next.title;
      position = next.body.dataset.position || position;
      if (isConnected()) showLive();
      if (document.activeElement !== focused && focused.isConnected) focused.focus({ preventScroll: true }); // it was moved
      prepare();
      ages(); // the page of the server has the ages of the time at which it was rendered
    } catch {
      again = true;
      failure = failure ? Math.min(longestDelay, 2 * failure) : firstDelay;
      if (isConnected()) showLive();
    } finally {
      busy = false;
      if (again && !ended) {
        clearTimeout(timer); // of a change during the request
        timer = 0;
        schedule(Math.max(quiet, failure, 3 * (performance.now() - began)));
      }
    }
  }

  // schedule updates the page after a delay, or at the time that is already scheduled, for example after a failure.
  function schedule(delay) {
    if (!timer) timer = setTimeout(() => { timer = 0; refresh(false); }, delay);
  }

  function isConnected() { return stream !== null && stream.readyState === EventSource.OPEN; }

  // connect opens the stream of changes after the position of the page, so that none is missed. A hidden page has no stream,
  // because browsers open at most six connections to one server.
  function connect() {
    if (stream || ended || document.hidden) return;
    const opened = new EventSource("/events?page=" + encodeURIComponent(location.pathname) + "&after=" + position);
    stream = opened;
    opened.onopen = () => {
      delay = firstDelay;
      showLive();
    };
    opened.addEventListener("change", () => schedule(0));
    opened.onerror = () => {
      const refused = opened.readyState === EventSource.CLOSED; // for example because the session has ended
      disconnect("Reconnecting");
      if (ended) return;
      reconnect = setTimeout(() => {
        if (refused) refresh(false);
        connect();
      }, delay);
      delay = Math.min(longestDelay, 2 * delay);
    };
  }

  function disconnect(text) {
    clearTimeout(reconnect);
    if (stream) stream.close();
    stream = null;
    if (!ended) setLive("off", text);
  }

  // text returns a duration as the server does, with one or two units.
  function duration(seconds) {
    const s = Math.max(0, Math.floor(seconds)), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
    if (s < 120) return s + "s";
    if (m < 10) return m + "m" + (s % 60 ? (s % 60) + "s" : "");
    if (h < 3) return m + "m";
    if (h < 8) return h + "h" + (m % 60 ? (m % 60) + "m" : "");
    if (h < 48) return h + "h";
    if (d < 8) return d + "d" + (h % 24 ? (h % 24) + "h" : "");
    if (d < 730) return d + "d";
    return Math.floor(d / 365) + "y";
  }

  function ages() {
    const now = Date.now() - skew;
    for (const t of document.querySelectorAll("time[data-age]")) {
      const text = duration((now - Date.parse(t.dateTime)) / 1000);
      if (t.textContent !== text) t.textContent = text;
    }
  }

  function prepare() {
    for (const b of document.querySelectorAll("button[data-copy][hidden]")) b.hidden = false;
  }

  function filter(form) {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value) query.set(name, value);
    history.replaceState(null, "", location.pathname + (query.size ? "?" + query : ""));
    refresh(true);
  }

  let typing = 0;
  document.addEventListener("input", (e) => {
    const form = e.target.closest("#filter");
    if (!form) return;
    clearTimeout(typing);
    typing = setTimeout(() => filter(form), 200);
  });
  document.addEventListener("submit", (e) => {
    if (e.target.id !== "filter") return;
    e.preventDefault();
    filter(e.target);
  });
  document.addEventListener("click", async (e) => {
    const button = e.target.closest("button[data-copy]");
    if (!button) return;
    const announce = document.getElementById("announce");
    try {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy";
    }
    announce.textContent = button.textContent;
    setTimeout(() => {
      button.textContent = "Copy";
      announce.textContent = "";
    }, 2000);
  });
  document.addEventListener("keydown", (e) => {
    const inText = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.nodeName);
    if (e.key === "/" && !inText && !e.ctrlKey && !e.metaKey && !e.altKey) {
      const q = document.getElementById("q");
      if (q) {
        e.preventDefault();
        q.focus();
        q.select();
      }
    }
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return disconnect("Not live");
    connect();
    if (again) schedule(0);
  });
  addEventListener("pagehide", () => disconnect("Not live"));
  addEventListener("pageshow", connect); // also after a return to a page in the cache of the browser
  document.addEventListener("selectionchange", () => { if (again && !isSelecting()) schedule(quiet); });
  addEventListener("popstate", () => refresh(true));

  prepare();
  ages();
  setInterval(ages, 10000);
  connect();
})();
