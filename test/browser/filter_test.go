package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Each filter is used as a reader does; the address has the filter, and the reset link removes it.
func TestFilters(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	for _, c := range []struct {
		name, field, keys string
		want, query       string
	}{
		{name: "text", field: "#q", keys: "CRAWLER full", want: "search/crawler", query: "?q=CRAWLER+full"},
		{name: "namespace", field: "select[name=namespace]", keys: "data", want: "data/warehouse data/archive data/lake", query: "?namespace=data"},
		{name: "version", field: "select[name=version]", keys: "v1.35", want: "data/warehouse", query: "?version=v1.35.4"},
		{name: "label", field: "input[name=label]", keys: "team!=a", want: "", query: "?label=team%21%3Da"},
	} {
		p.visit(fleetPath)
		p.do(c.name, chromedp.SendKeys(c.field, c.keys, chromedp.ByQuery))
		p.until(c.name+": the rows are filtered", rows+" === "+`"`+c.want+`"`)
		if got := eval[string](p, "location.search"); got != c.query {
			t.Errorf("%s: the query is %s, want %s", c.name, got, c.query)
		}
		p.visit(fleetPath + c.query)
		if got := eval[string](p, rows); got != c.want {
			t.Errorf("%s: the address shows %q, want %q", c.name, got, c.want)
		}
		p.follow(".reset", "table.fleet")
		if n := eval[int](p, `document.querySelectorAll("table.fleet tbody tr").length`); n != 13 {
			t.Errorf("%s: %d rows after a reset", c.name, n)
		}
	}
}

func TestFilterByHealth(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	p.follow(`.counts a[href*="health=Paused"]`, "table.fleet")
	p.until("only the paused cluster is shown", rows+` === "data/archive"`)
	p.do("typing", chromedp.SendKeys("#q", "archive"))
	p.until("both filters are in the address", `location.search.includes("health=Paused") && location.search.includes("q=archive")`)
	p.do("clearing the text", chromedp.SendKeys("#q", strings.Repeat(kb.Backspace, len("archive"))))
	p.until("the text is not in the address", `!location.search.includes("q=")`)
}

func TestSort(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	if got := eval[string](p, rows); strings.HasPrefix(got, "data/archive data/lake") {
		t.Errorf("clusters with a problem are not first: %s", got)
	}
	p.do("sorting by name", chromedp.SendKeys("select[name=sort]", "name", chromedp.ByQuery))
	p.until("the rows are sorted", rows+`.startsWith("data/archive data/lake data/warehouse payments/fraud")`)
}

func TestFilterWithoutResult(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	p.do("typing", chromedp.SendKeys("#q", "zebra"))
	p.until("the page is empty", `document.querySelector(".empty")?.textContent.includes("No cluster matches the filter.")`)
	p.visit(fleetPath + "?label=%3D%3D")
	p.contains("The label filter is not a selector such as team=a,tier!=dev.")
	if role := eval[string](p, `document.querySelector("#main .notice.problem").getAttribute("role")`); role != "alert" {
		t.Errorf("the role of the message is %q", role)
	}
}

// The filter works without the script.
func TestFilterWithoutScript(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	p.do("disabling scripts", emulation.SetScriptExecutionDisabled(true))
	p.visit(fleetPath)
	p.do("typing", chromedp.SendKeys("#q", "crawler"), chromedp.Click(`#filter button[type="submit"]`, chromedp.ByQuery), chromedp.WaitReady(".reset"), chromedp.WaitReady("footer"))
	if got := eval[string](p, rows); got != "search/crawler" {
		t.Errorf("the rows are %q", got)
	}
	if n := eval[int](p, `[...document.querySelectorAll("button[data-copy]")].filter(b => b.checkVisibility()).length`); n != 0 {
		t.Errorf("%d buttons do nothing without the script", n)
	}
}
