package browser

import (
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hostileNames returns names that a tenant could choose to attack or confuse the reader.
func hostileNames() []string {
	return []string{
		`<script>window.pwned=1<script>`,
		`"><img src=x onerror=window.pwned=1>`,
		`'+window.pwned+'{{.}}`,
		strings.Repeat("a", 253),
		strings.Repeat("long-name.", 25) + "end",
		"עברית-שלום",
		"\u202egnp.exe\u2066",
		"e\u0301\u0301\u0301\u0301\u0301-\U0001F469\u200d\U0001F680",
	}
}

const attack = `</script></td></table><script>window.pwned=1</script><img src=x onerror="window.pwned=1"><svg onload="window.pwned=1"><a href="javascript:window.pwned=1">x</a> ` + "\u202e\u0000\u001b[2J"

// Names and messages of tenants are text on every page: no script runs, no element is added, nothing is wider than the
// window, and no character changes the direction of the text around it.
func TestHostileNames(t *testing.T) {
	api := newAPI(t)
	put(api, healthy().objects("team", "good", "")...)
	for _, name := range hostileNames() {
		put(api, healthy().objects("team", name, "")...)
		breakCluster(api, "team", name, name+" "+attack)
		event(t, api, map[string]string{
			"namespace": "team", "name": "e" + name, "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "object": name,
			"reason": name, "note": attack, "type": "Warning", "minutes": "3",
		})
	}
	put(api, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig", "metadata": map[string]any{"name": hostileNames()[1]},
		"spec": map[string]any{"clientConfig": map[string]any{"url": "javascript:window.pwned=1"}},
		"status": map[string]any{"handlers": []any{map[string]any{
			"name": attack, "failurePolicy": attack, "requestHook": map[string]any{"apiVersion": attack, "hook": attack},
		}}},
	}})

	p := serve(t, api).open(t)
	paths := []string{fleetPath, needsPath, extensionsPath, fleetPath + "?q=" + url.QueryEscape(attack) + "&label=" + url.QueryEscape(attack) + "&health=" + url.QueryEscape(attack)}
	for _, name := range hostileNames() {
		name = url.PathEscape(name)
		paths = append(paths, "/m/prod-eu/cluster/team/"+name, "/m/prod-eu/cluster/team/"+name+"?all=1",
			"/m/prod-eu/object/infrastructure.slipway.dev/LocalMachine/team/"+name+"-md-a-1", "/m/prod-eu/object/cluster.x-k8s.io/Cluster/team/"+name)
	}
	for _, width := range []int64{360, 1440} {
		p.resize(width)
		for _, path := range paths {
			p.visit(path)
			checkHarmless(p, path)
		}
	}
	p.visit(fleetPath)
	if n := eval[int](p, `document.querySelectorAll("table.fleet tbody tr").length`); n != len(hostileNames())+1 {
		t.Errorf("the fleet has %d rows", n)
	}
}

// checkHarmless checks that texts of tenants had no effect on the page.
func checkHarmless(p *tab, path string) {
	p.t.Helper()
	for _, c := range []struct{ what, expression string }{
		{"a script ran", `"pwned" in window`},
		{"an element was added", `document.scripts.length !== 1 || document.querySelector("img, iframe, object, embed, [onerror], [onload], [style]") !== null`},
		{"a link leads elsewhere", `[...document.links].some(a => a.protocol !== "http:" || a.origin !== location.origin)`},
		{"a character changes the direction of text", `/[\u0000\u001b\u202a-\u202e\u2066-\u2069]/.test(document.documentElement.outerHTML)`},
		{"the page is not shown", `document.querySelector("h1").textContent === "Not shown"`},
	} {
		if eval[bool](p, c.expression) {
			p.t.Errorf("%s: %s", path, c.what)
		}
	}
	p.checkWidth(path)
}

// Updates do not let texts of tenants become elements.
func TestHostileUpdates(t *testing.T) {
	w := serve(t, demo(t))
	p := w.open(t)
	breakCluster(w.api, "shop", "reviews", "attack "+attack)
	p.until("the row has the text", `document.getElementById("r-shop_reviews").textContent.includes("window.pwned=1")`)
	checkHarmless(p, fleetPath)
}
