package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// awaitPromise makes an evaluation wait for the promise that it returns.
func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// A change of an object changes the row, the counts and the order, and nothing that the reader is doing.
func TestFleetIsLive(t *testing.T) {
	w := serve(t, demo(t))
	p := w.open(t)
	p.resize(768)
	p.do("focusing a row", chromedp.Evaluate(`(() => { window.row = document.getElementById("r-shop_reviews"); row.querySelector("a").focus(); scrollTo(0, 150); })()`, nil))
	scroll := eval[float64](p, "scrollY")
	if scroll == 0 {
		t.Fatal("the page does not scroll")
	}
	breakCluster(w.api, "shop", "reviews", "The container ended with exit status 137")
	p.until("the row has the cause", `row.textContent.includes("exit status 137")`)
	if !eval[bool](p, `row.isConnected && row === document.getElementById("r-shop_reviews") && row.contains(document.activeElement)`) {
		t.Error("the row was replaced, or lost the focus")
	}
	if now := eval[float64](p, "scrollY"); now != scroll {
		t.Errorf("the page scrolled from %v to %v", scroll, now)
	}
	p.until("the row is above healthy clusters", `row.compareDocumentPosition(document.getElementById("r-data_lake")) === Node.DOCUMENT_POSITION_FOLLOWING`)
	p.until("the tab counts the problem", `document.querySelector("#tabs .badge").firstChild.nodeValue === "4"`)

	put(w.api, healthy().objects("shop", "wishlist", "")...)
	p.until("a new cluster appears", `document.getElementById("r-shop_wishlist") !== null`)
	w.api.Delete("clusters", "shop", "wishlist")
	p.until("a deleted cluster disappears", `document.getElementById("r-shop_wishlist") === null`)
}

// What the reader types in the filter remains during updates.
func TestTypingSurvivesUpdates(t *testing.T) {
	w := serve(t, demo(t))
	p := w.open(t)
	p.do("typing a label", chromedp.Focus(`input[name="label"]`), chromedp.KeyEvent("team!=b"))
	breakCluster(w.api, "shop", "reviews", "The container ended")
	p.until("the row is updated", `document.getElementById("main").textContent.includes("The container ended")`)
	p.do("typing the rest", chromedp.KeyEvent("c"))
	p.until("the filter has the whole text", `location.search === "?label=team%21%3Dbc"`)
	if value := eval[string](p, `document.activeElement.name + ":" + document.activeElement.value`); value != "label:team!=bc" {
		t.Errorf("the field with the focus is %s", value)
	}
}

// The pages of a cluster, of an object and of the extensions, and the list of what needs a person, are live. Open details
// stay open.
func TestOtherPagesAreLive(t *testing.T) {
	w := serve(t, demo(t))
	p := w.open(t)
	for _, c := range []struct{ path, open, change string }{
		{path: "/m/prod-eu/cluster/shop/catalog", open: "#picture", change: "change one"},
		{path: "/m/prod-eu/object/infrastructure.slipway.dev/LocalMachine/shop/catalog-md-a-1", open: "#yaml", change: "change two"},
		{path: needsPath, change: "change three"},
	} {
		p.visit(c.path)
		p.until("the page is live", `document.getElementById("live").dataset.state === "on"`)
		if c.open != "" {
			p.do("toggling details", chromedp.Evaluate(`window.wasOpen = !document.querySelector("`+c.open+`").open; document.querySelector("`+c.open+`").open = wasOpen`, nil))
		}
		breakCluster(w.api, "shop", "catalog", "A "+c.change)
		p.until(c.path+" has the change", `document.getElementById("main").textContent.includes("A `+c.change+`")`)
		if c.open != "" && !eval[bool](p, `document.querySelector("`+c.open+`").open === wasOpen`) {
			t.Errorf("%s: an update opened or closed details", c.path)
		}
	}
	p.visit(extensionsPath)
	w.api.Put(t, `{apiVersion: runtime.cluster.x-k8s.io/v1beta2, kind: ExtensionConfig, metadata: {name: second}, spec: {clientConfig: {url: "https://second.example"}}}`)
	p.until("the new extension appears", `document.getElementById("main").textContent.includes("second")`)
}

// Selected text is not replaced before the selection ends.
func TestSelectionIsNotReplaced(t *testing.T) {
	w := serve(t, demo(t))
	p := w.open(t)
	p.visit(clusterPath)
	p.do("selecting the cause", chromedp.Evaluate(`(() => {
		getSelection().selectAllChildren(document.querySelector(".chain li.root .message"));
		window.second = new EventSource("/events?page=" + encodeURIComponent(location.pathname));
		second.addEventListener("change", () => { window.notified = true; });
		return new Promise(done => { second.onopen = () => done(); });
	})()`, nil, awaitPromise))
	breakCluster(w.api, "payments", "ledger", "Another cause")
	p.until("the browser was notified", `window.notified === true`)
	if text := eval[string](p, `getSelection().toString()`); text == "" || eval[bool](p, `document.getElementById("main").textContent.includes("Another cause")`) {
		t.Errorf("the selected text was replaced; the selection is %q", text)
	}
	p.do("ending the selection", chromedp.Evaluate(`second.close(); getSelection().removeAllRanges()`, nil))
	p.until("the page has the change", `document.getElementById("main").textContent.includes("Another cause")`)
}

// Text that is selected while an update is on its way is not replaced either.
func TestSelectionDuringUpdate(t *testing.T) {
	w := serve(t, demo(t))
	p := w.open(t)
	p.visit(clusterPath)
	p.until("the page is live", `document.getElementById("live").dataset.state === "on"`)
	p.do("selecting the cause during the next update", chromedp.Evaluate(responses(`
		getSelection().selectAllChildren(document.querySelector(".chain li.root .message"));
		setTimeout(() => { window.updated = true; });
		return body;`), nil))
	breakCluster(w.api, "payments", "ledger", "Another cause")
	p.until("the browser has the update", `window.updated === true`)
	if text := eval[string](p, `getSelection().toString()`); text == "" || eval[bool](p, `document.getElementById("main").textContent.includes("Another cause")`) {
		t.Errorf("the selected text was replaced; the selection is %q", text)
	}
	p.do("ending the selection", chromedp.Evaluate(`window.fetch = realFetch; getSelection().removeAllRanges()`, nil))
	p.until("the page has the change", `document.getElementById("main").textContent.includes("Another cause")`)
}

// responses returns a script that changes the bodies of the responses that the page receives.
func responses(change string) string {
	return `window.realFetch = fetch; window.fetch = async (...of) => {
		const response = await realFetch(...of), body = await response.text();
		return { ok: response.ok, status: response.status, text: async () => { ` + change + ` } };
	}; undefined`
}

// The text that is selected in a field, and the choice of a list that has the focus, remain during updates.
func TestFieldsAreNotReplaced(t *testing.T) {
	w := serve(t, demo(t))
	p := w.open(t)
	p.do("typing", chromedp.SendKeys("#q", "shop"))
	p.until("the rows are filtered", `document.querySelectorAll("table.fleet tbody tr").length === 4`)
	p.do("selecting a part of the text", chromedp.Evaluate(`document.getElementById("q").setSelectionRange(1, 3)`, nil))
	breakCluster(w.api, "shop", "reviews", "The first change")
	p.until("the row is updated", `document.getElementById("main").textContent.includes("The first change")`)
	if got := eval[string](p, `[document.activeElement.id, document.activeElement.value, document.activeElement.selectionStart, document.activeElement.selectionEnd].join(" ")`); got != "q shop 1 3" {
		t.Errorf("the field with the focus, its text and its selection are %s", got)
	}
	p.do("focusing a list, and choosing a value that is not applied yet", chromedp.Evaluate(`(() => { const list = document.querySelector("select[name=sort]"); list.focus(); list.value = "name"; })()`, nil))
	breakCluster(w.api, "shop", "reviews", "The second change")
	p.until("the row is updated", `document.getElementById("main").textContent.includes("The second change")`)
	if got := eval[string](p, `document.activeElement.name + " " + document.activeElement.value`); got != "sort name" {
		t.Errorf("the list with the focus and its value are %s", got)
	}
}

// A response that is not a page does not replace the page. It is a failure, which is reported and retried with a backoff.
func TestResponseWithoutPage(t *testing.T) {
	w := serve(t, demo(t))
	p := w.open(t)
	p.do("replacing responses", chromedp.Evaluate(`window.times = []; `+responses(`times.push(performance.now()); return "<title>Proxy</title><p>Bad gateway";`), nil))
	breakCluster(w.api, "shop", "reviews", "A change")
	p.until("the failure is reported", `document.getElementById("live").dataset.state === "off" && document.getElementById("live").textContent === "Update failed"`)
	if title := eval[string](p, "document.title"); !strings.HasPrefix(title, "Fleet") {
		t.Errorf("the title is %q", title)
	}
	p.contains("payments/ledger")
	p.until("the update is tried again", `times.length > 2`)
	if delays := eval[[]float64](p, `[times[1] - times[0], times[2] - times[1]]`); delays[0] < 1900 || delays[1] < 3900 {
		t.Errorf("the update is tried again after %v ms", delays)
	}
	p.do("restoring responses", chromedp.Evaluate(`window.fetch = realFetch`, nil))
	p.until("the page is live", `document.getElementById("live").dataset.state === "on" && document.getElementById("main").textContent.includes("A change")`)
}

// An update shows the ages of now, not those of the time at which the server rendered a row.
func TestAgesAfterUpdate(t *testing.T) {
	w := serve(t, demo(t))
	p := w.open(t)
	p.do("moving the clock, without the regular update of ages", chromedp.Evaluate(`(() => {
		const now = Date.now, last = setInterval(() => {}, 1000);
		for (let i = 0; i <= last; i++) clearInterval(i);
		Date.now = () => now() + 20 * 24 * 3600 * 1000;
	})()`, nil))
	breakCluster(w.api, "shop", "reviews", "A change")
	p.until("the row is updated", `document.getElementById("main").textContent.includes("A change")`)
	if ages := eval[string](p, `[...document.querySelectorAll("#main time[data-age]")].map(e => e.textContent).filter(age => !age.endsWith("d")).join(" ")`); ages != "" {
		t.Errorf("20 days later, the ages are %s", ages)
	}
}

// A page reports that its server has ended.
func TestServerEnds(t *testing.T) {
	w := serve(t, demo(t))
	p := w.open(t)
	p.expect("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE")
	w.stop()
	p.until("the page is not live", `document.getElementById("live").dataset.state === "off" && document.getElementById("live").textContent === "Reconnecting"`)
	p.contains("payments/ledger")
}
