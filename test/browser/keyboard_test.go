package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// collect lists the elements that the Tab key should reach, in the order of the document.
const collect = `window.order = [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex]")]
	.filter(e => e.tabIndex >= 0 && e.type !== "hidden" && e.checkVisibility()); order.length`

// focused describes the focused element: its position in the order, whether the focus is visible, and whether something
// covers it.
const focused = `(() => {
	const e = document.activeElement, style = getComputedStyle(e), box = [...e.getClientRects()].sort((a, b) => b.width - a.width)[0];
	const at = box ? document.elementFromPoint((Math.max(box.left, 0) + Math.min(box.right, innerWidth)) / 2, (box.top + box.bottom) / 2) : null;
	return {
		Index: window.order.indexOf(e), Name: e.nodeName + " " + (e.id || e.name || e.textContent.trim().slice(0, 40)),
		Outlined: e.matches(":focus-visible") && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
		Covered: !at || !(e.contains(at) || at.contains(e) && at !== document.body && at.id !== "main"),
		By: at ? at.nodeName + "." + at.className : "nothing",
	};
})()`

type focus struct {
	Index             int
	Name              string
	Outlined, Covered bool
	By                string
}

// The Tab key visits everything in the order of the document, forwards and backwards, and the focus is always visible.
func TestTabOrder(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	for _, path := range []string{fleetPath, clusterPath, objectPath, extensionsPath, needsPath} {
		p.visit(path)
		n := eval[int](p, collect)
		check := func(want int, direction string) {
			t.Helper()
			f := eval[focus](p, focused)
			if f.Index != want {
				t.Fatalf("%s: %s, stop %d of %d is %s (%d)", path, direction, want, n, f.Name, f.Index)
			}
			if !f.Outlined {
				t.Errorf("%s: %s, the focus of %s is not visible", path, direction, f.Name)
			}
			if f.Covered {
				t.Errorf("%s: %s, %s is covered by %s", path, direction, f.Name, f.By)
			}
		}
		p.press(kb.Tab, false)
		p.until("the skip link is in view", `document.querySelector(".skip").getBoundingClientRect().top >= 0`)
		check(0, "forwards")
		for i := 1; i < n; i++ {
			p.press(kb.Tab, false)
			check(i, "forwards")
		}
		for i := n - 2; i > 0; i-- {
			p.press(kb.Tab, true)
			check(i, "backwards")
		}
	}
}

func TestSkipLink(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	p.press(kb.Tab, false)
	p.press(kb.Enter, false)
	p.until("the content has the focus", `document.activeElement.id === "main"`)
	p.press(kb.Tab, false)
	if !eval[bool](p, `document.getElementById("main").contains(document.activeElement) && document.activeElement.id !== "main"`) {
		t.Error("the next stop is not in the content")
	}
}

func TestSlash(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	p.slash()
	p.until("the filter has the focus", `document.activeElement.id === "q"`)
	if text := eval[string](p, `document.activeElement.value`); text != "" {
		t.Errorf("the key wrote %q", text)
	}
	p.slash()
	p.until("the second slash is a character", `document.getElementById("q").value === "/"`)
	p.visit(clusterPath)
	p.slash()
	if id := eval[string](p, `document.activeElement.nodeName`); id != "BODY" {
		t.Errorf("on a page without a filter, %s has the focus", id)
	}
}

// Links and details work with Enter, and an update leaves the focus where it is.
func TestEnter(t *testing.T) {
	w := serve(t, demo(t))
	p := w.open(t)
	p.do("opening a cluster", chromedp.Focus("#r-payments_ledger th a", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#picture summary"))
	open := eval[bool](p, `document.getElementById("picture").open`)
	p.do("focusing details", chromedp.Focus("#picture summary"), chromedp.KeyEvent(kb.Enter))
	p.until("the details toggled", fmt.Sprintf(`document.getElementById("picture").open === %t`, !open))
	breakCluster(w.api, "payments", "ledger", "Another cause")
	p.until("the page is updated", `document.getElementById("main").textContent.includes("Another cause")`)
	if !eval[bool](p, fmt.Sprintf(`document.activeElement.nodeName === "SUMMARY" && document.getElementById("picture").open === %t`, !open)) {
		t.Error("the update moved the focus or closed the details")
	}
}
