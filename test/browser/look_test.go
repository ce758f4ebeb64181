package browser

import (
	"fmt"
	"strings"
	"testing"
)

// overflow lists what is wider than the window. Tables that scroll on their own are no defect.
const overflow = `document.documentElement.scrollWidth <= innerWidth ? "" :
	document.documentElement.scrollWidth + " of " + innerWidth + " pixels: " + [...document.querySelectorAll("body *")]
	.filter(e => !e.closest(".scroll, .sr") && e.getBoundingClientRect().right > innerWidth + 1).slice(0, 6).map(e => e.nodeName + "." + (e.className.baseVal ?? e.className)).join(" ")`

func (p *tab) checkWidth(path string) {
	p.t.Helper()
	if wide := eval[string](p, overflow); wide != "" {
		p.t.Errorf("%s is too wide: %s", path, wide)
	}
}

func TestWidths(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	p.expect("status of 404")
	for _, width := range []int64{360, 768, 1440, 2560} {
		p.resize(width)
		for _, path := range allPaths() {
			p.visit(path)
			p.checkWidth(fmt.Sprintf("%s at %d", path, width))
			if hidden := eval[string](p, `[...document.querySelectorAll("h1, .health, .reason, .chain, #filter")].filter(e => !e.checkVisibility() && !e.matches("td:empty")).map(e => e.className || e.nodeName).join(" ")`); hidden != "" {
				t.Errorf("%s at %d: hidden: %s", path, width, hidden)
			}
		}
	}
}

// contrast lists texts whose contrast with the background is below the ratio of WCAG 2.2, level AA.
const contrast = `(() => {
	const parse = text => { const n = text.match(/[\d.]+/g).map(Number); return { c: n.slice(0, 3), a: n.length > 3 ? n[3] : 1 }; };
	const over = (top, below) => top.c.map((v, i) => v * top.a + below[i] * (1 - top.a));
	const back = e => {
		const layers = [];
		for (; e; e = e.parentElement) { const b = parse(getComputedStyle(e).backgroundColor); layers.push(b); if (b.a === 1) break; }
		return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
	};
	const light = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const bad = new Set();
	for (const e of document.querySelectorAll("body *")) {
		if (!e.checkVisibility() || e.closest(".sr, .skip, svg") || ![...e.childNodes].some(n => n.nodeType === 3 && n.nodeValue.trim())) continue;
		const style = getComputedStyle(e), below = back(e), a = light(over(parse(style.color), below)), b = light(below);
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), size = parseFloat(style.fontSize);
		const large = size >= 24 || size >= 18.66 && parseInt(style.fontWeight) >= 700;
		if (ratio < (large ? 3 : 4.5)) bad.add(e.nodeName + "." + e.className + " " + ratio.toFixed(2) + " " + e.textContent.trim().slice(0, 30));
	}
	return [...bad].slice(0, 10).join("; ");
})()`

func TestSchemes(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	p.expect("status of 404")
	for _, c := range []struct {
		scheme string
		isDark bool
	}{{"light", false}, {"dark", true}} {
		p.scheme(c.scheme)
		for _, path := range allPaths() {
			p.visit(path)
			back := eval[[]int](p, `getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number).slice(0, 3)`)
			if dark := back[0]+back[1]+back[2] < 3*64; dark != c.isDark {
				t.Errorf("%s in the scheme %s has the background %v", path, c.scheme, back)
			}
			if bad := eval[string](p, contrast); bad != "" {
				t.Errorf("%s in the scheme %s: the contrast is too low: %s", path, c.scheme, strings.ReplaceAll(bad, "\n", " "))
			}
		}
	}
}

// The health of a cluster and of a condition is text and shape, not only a colour.
func TestHealthIsText(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	missing := eval[int](p, `[...document.querySelectorAll("table.fleet tbody tr")].filter(r => !/^(Problem|Changing|Paused|Healthy)$/.test(r.querySelector(".health").textContent.trim()) || !r.querySelector(".health svg path, .health svg circle")).length`)
	if missing != 0 {
		t.Errorf("%d rows have no text or no shape of their health", missing)
	}
}

// Names of ordinary length are not broken into pieces, neither in the window of a laptop nor in the pictures of the
// documentation.
func TestNamesAreWhole(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	for _, width := range []int64{768, 1280, 1440, 2560} {
		p.resize(width)
		broken := eval[string](p, `document.querySelectorAll("table.fleet td[data-label=Class] bdi").forEach(e => { e.textContent = "simulated"; }),
			[...document.querySelectorAll("table.fleet :is(th[scope=row], td[data-label=Class]) bdi")].filter(e => e.getClientRects().length > 1).map(e => e.textContent).join(", ")`)
		if broken != "" {
			t.Errorf("at %d pixels, these names are broken: %s", width, broken)
		}
	}
}
