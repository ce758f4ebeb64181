package ui

import (
	"regexp"
	"strings"
	"testing"
)

// The remedy of a row is reachable by keyboard, only a sentence is announced, and buttons have distinct names.
func TestAccessibleNames(t *testing.T) {
	s := testServer(t, troubled(t), nil)
	body := page(t, s, "/m/prod-script-alert-1-script/", 200)
	contains(t, "fleet", body, `<details><summary class="who">needs a person</summary>`, `<p id="counts" class="sr" aria-live="polite">2 clusters, 1 with a problem</p>`)
	if strings.Contains(body, `class="who" title=`) {
		t.Error("the remedy is only in a title")
	}
	cluster := page(t, s, "/m/prod-script-alert-1-script/cluster/team/bad", 200)
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`<button[^>]*data-copy[^>]*aria-label="([^"]*)"`).FindAllStringSubmatch(cluster, -1) {
		if names[m[1]] && !strings.HasPrefix(m[1], "Copy slipway explain") {
			t.Errorf("two buttons have the name %q", m[1])
		}
		names[m[1]] = true
	}
	if len(names) < 2 {
		t.Errorf("the names of the buttons are %v", names)
	}
}
