package browser

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const (
	// limit ends a step that would hang. How fast updates are is measured by TestThousandClusters.
	limit    = time.Minute
	interval = 20 * time.Millisecond
)

// tab is a tab of the browser. It fails the test if the page does something that it must not.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu       sync.Mutex
	problems []string
	expected []*regexp.Regexp
}

// newTab opens an empty tab.
func (w *world) newTab(t *testing.T) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(chromium)
	p := &tab{t: t, ctx: ctx, base: w.base}
	t.Cleanup(func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, problem := range p.problems {
			t.Error(problem)
		}
	})
	chromedp.ListenTarget(ctx, p.note)
	p.do("opening a tab", log.Enable(), runtime.Enable(), network.Enable())
	p.resize(1440)
	p.scheme("light")
	return p
}

// open opens a tab and signs in with the address that "slipway ui" prints.
func (w *world) open(t *testing.T) *tab {
	t.Helper()
	p := w.newTab(t)
	p.do("signing in", chromedp.Navigate(w.first), chromedp.WaitReady("footer"))
	p.until("the page is live", `document.getElementById("live").dataset.state === "on"`)
	p.until("the objects are read", `document.querySelectorAll("table.fleet tbody tr").length > 0`)
	return p
}

// note records events that are defects of the page.
func (p *tab) note(event any) {
	text := ""
	switch e := event.(type) {
	case *log.EventEntryAdded:
		text = fmt.Sprintf("the console has a message (%s, %s): %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *runtime.EventExceptionThrown:
		text = "the script failed: " + e.ExceptionDetails.Error()
	case *runtime.EventConsoleAPICalled:
		text = fmt.Sprintf("the script wrote to the console: %s", e.Type)
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, p.base+"/") {
			text = "the page sent a request to " + e.Request.URL
		}
	}
	if text == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.expected, func(r *regexp.Regexp) bool { return r.MatchString(text) }) {
		p.problems = append(p.problems, text)
	}
}

// expect allows problems that match the expression.
func (p *tab) expect(expression string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, regexp.MustCompile(expression))
}

// take returns the problems so far and forgets them.
func (p *tab) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.problems
	p.problems = nil
	return out
}

// do runs the actions and ends the test if one fails.
func (p *tab) do(what string, actions ...chromedp.Action) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	if chromedp.FromContext(p.ctx).Target == nil {
		ctx = p.ctx // the first call creates the target, which ends with the context of that call
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// visit opens a page of the server.
func (p *tab) visit(path string) {
	p.t.Helper()
	p.do("opening "+path, chromedp.Navigate(p.base+path), chromedp.WaitReady("footer"))
}

// follow activates a link and waits for an element of the next page.
func (p *tab) follow(link, next string) {
	p.t.Helper()
	p.do("following "+link, chromedp.Click(link, chromedp.ByQuery), chromedp.WaitVisible(next, chromedp.ByQuery), chromedp.WaitReady("footer"))
}

// until waits for an expression to be true.
func (p *tab) until(what, expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit+5*time.Second)
	defer cancel()
	err := chromedp.Run(ctx, chromedp.Poll("("+expression+")", nil, chromedp.WithPollingInterval(interval), chromedp.WithPollingTimeout(limit)))
	if err != nil {
		p.t.Fatalf("waiting until %s: %v\nthe page has:\n%s", what, err, eval[string](p, `document.getElementById("main").innerText.replace(/\s+/g, " ").slice(0, 2000)`))
	}
}

// press presses a key, with Shift if shift is true.
func (p *tab) press(key string, shift bool) {
	p.t.Helper()
	var options []chromedp.KeyOption
	if shift {
		options = append(options, chromedp.KeyModifiers(input.ModifierShift))
	}
	p.do("pressing a key", chromedp.KeyEvent(key, options...))
}

// slash presses the key as a keyboard does: if the page handles it, no character is written.
func (p *tab) slash() {
	p.t.Helper()
	down := input.DispatchKeyEvent(input.KeyDown).WithKey("/").WithCode("Slash").WithText("/").WithWindowsVirtualKeyCode(191)
	up := input.DispatchKeyEvent(input.KeyUp).WithKey("/").WithCode("Slash").WithWindowsVirtualKeyCode(191)
	p.do("pressing /", down, up)
}

func (p *tab) resize(width int64) {
	p.t.Helper()
	p.do("resizing", emulation.SetDeviceMetricsOverride(width, 900, 1, false))
}

// scheme selects the colour scheme light or dark. Nothing is animated, so that positions are final at once.
func (p *tab) scheme(name string) {
	p.t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}
	p.do("selecting the scheme "+name, emulation.SetEmulatedMedia().WithFeatures(features))
}

// eval returns the value of an expression.
func eval[T any](p *tab, expression string) (out T) {
	p.t.Helper()
	p.do("evaluating "+expression, chromedp.Evaluate(expression, &out))
	return out
}

// contains checks the text of the page.
func (p *tab) contains(texts ...string) {
	p.t.Helper()
	main := eval[string](p, `document.getElementById("main").textContent`)
	for _, text := range texts {
		if !strings.Contains(main, text) {
			p.t.Errorf("%s does not contain %q", eval[string](p, "location.pathname"), text)
		}
	}
}

// execute calls a method of the DevTools protocol whose types the library does not decode in all versions of the browser.
func (p *tab) execute(method string, result any) {
	p.t.Helper()
	p.do(method, chromedp.ActionFunc(func(ctx context.Context) error { return cdp.Execute(ctx, method, nil, result) }))
}
