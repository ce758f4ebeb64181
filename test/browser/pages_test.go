package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The address with the token starts a session, which the script of the page cannot read.
func TestSignIn(t *testing.T) {
	w := serve(t, demo(t))
	stranger := w.newTab(t)
	stranger.expect("status of 401")
	stranger.do("opening the page without a session", chromedp.Navigate(w.base+fleetPath))
	if text := eval[string](stranger, "document.body.textContent"); !strings.Contains(text, `Open the address that "slipway ui" printed`) || strings.Contains(text, "ledger") {
		t.Errorf("without a session the page has: %s", text)
	}
	p := w.open(t)
	if at := eval[string](p, "location.href"); at != w.base+fleetPath {
		t.Errorf("the first page is %s", at)
	}
	if cookie := eval[string](p, "document.cookie"); cookie != "" {
		t.Errorf("the script can read the cookie %q", cookie)
	}
}

// A reader gets from the fleet to the cause of a problem and to all other pages by clicking.
func TestPages(t *testing.T) {
	staging := newAPI(t)
	put(staging, healthy().objects("team", "next", "")...)
	p := serve(t, demo(t), staging).open(t)
	title := func(want string) {
		t.Helper()
		if got := eval[string](p, "document.title"); !strings.HasPrefix(got, want) {
			t.Errorf("the title of %s is %q, want %q", eval[string](p, "location.pathname"), got, want)
		}
	}
	title("Fleet · prod-eu")
	p.contains("data/archive", "v1.35.4 → v1.36.0", "needs a person", "belongs to LocalMachine staging/ledger-md-a-1", "Paused")

	p.follow("#r-payments_ledger th a", "#why-title")
	title("ledger")
	p.contains("What to do", "belongs to LocalMachine staging/ledger-md-a-1", "Machines by version and stage", "The last hour", "slipway describe cluster ledger -n payments")

	p.follow(".chain li.root a", "#yaml-title")
	title("LocalMachine ledger-md-a-1")
	p.contains("Plan of the manager", "until the container is removed", "MachineNotOwned", "providerID: local://ledger-md-a-1", "Owners and owned objects")
	p.do("going back", chromedp.NavigateBack(), chromedp.WaitVisible("#rollout-title"))

	p.follow(`#views a[href="/m/prod-eu/extensions"]`, ".card")
	title("Extensions")
	p.contains("guard", "freeze.guard", "BeforeClusterUpgrade", "open", "42")

	p.follow(`#views a[href="/needs"]`, ".card")
	title("Needs a person")
	p.contains("ledger", "prod-eu", "What to do")

	p.visit(rolloutPath)
	p.contains("v1.35.4", "v1.36.0", "Creating")
	if n := eval[int](p, `document.querySelectorAll("svg.rollout rect.creating").length`); n == 0 {
		t.Error("the picture of the rollout has no Machine that is being created")
	}
	p.visit(hookPath)
	p.contains("Hooks that block", "freeze.guard", "no changes before Monday 08:00 UTC")

	p.follow(`#tabs a[href="/m/staging/"]`, "table.fleet")
	title("Fleet · staging")
	p.contains("team/next")

	p.expect("status of 404")
	p.visit(missingPath)
	title("Not shown")
	p.contains("there is no cluster none/none")
}

// The tree of a cluster is folded to what matters, and unfolds.
func TestTreeUnfolds(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	p.visit(clusterPath)
	p.do("unfolding", chromedp.Click(".tools a"), chromedp.WaitVisible(`a[href$="/KubeadmConfig/payments/ledger-cp"]`))
	p.contains("Fold healthy objects", "MachineSet")
}

// Commands are copied with a button that exists only where the script runs.
func TestCopyButton(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	p.visit(clusterPath)
	p.do("copying", chromedp.Click("button[data-copy]", chromedp.ByQuery))
	p.until("the button reports the result", `/^(Copied|Select and copy)$/.test(document.querySelector("button[data-copy]").textContent)`)
}

// The browser rejects scripts, handlers, styles and images that are not the page's own, and the tests notice violations.
func TestPolicyIsEnforced(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	for _, element := range []string{
		`<img src="/none.png" onerror="window.pwned = 1">`,
		`<p style="position: fixed">text</p>`,
		`<img src="http://127.0.0.1:9/x.png" alt="">`,
	} {
		p.do("inserting an element", chromedp.Evaluate(`document.getElementById("main").insertAdjacentHTML("beforeend", `+"`"+element+"`"+`)`, nil))
	}
	p.do("inserting a script", chromedp.Evaluate(`(() => { const s = document.createElement("script"); s.textContent = "window.pwned = 1"; document.body.append(s); })()`, nil))
	p.visit(fleetPath) // the browser has reported everything when the next page is there
	if pwned := eval[bool](p, `"pwned" in window`); pwned {
		t.Error("an inserted script ran")
	}
	problems := strings.Join(p.take(), "\n")
	for _, directive := range []string{"inline event handler", "inline style", "inline script", "127.0.0.1:9"} {
		if !strings.Contains(problems, directive) {
			t.Errorf("no violation was noticed for %s:\n%s", directive, problems)
		}
	}
}
