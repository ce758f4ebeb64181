package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// axNode is an element as a screen reader gets it.
type axNode struct {
	Ignored bool    `json:"ignored"`
	Role    axValue `json:"role"`
	Name    axValue `json:"name"`
}

type axValue struct {
	Value string `json:"value"`
}

func (p *tab) accessibilityTree() []axNode {
	p.t.Helper()
	var tree struct {
		Nodes []axNode `json:"nodes"`
	}
	p.execute("Accessibility.getFullAXTree", &tree)
	return slices.DeleteFunc(tree.Nodes, func(n axNode) bool { return n.Ignored })
}

// names returns the names of the nodes of a role.
func names(nodes []axNode, role string) (out []string) {
	for _, n := range nodes {
		if n.Role.Value == role {
			out = append(out, n.Name.Value)
		}
	}
	return out
}

// A screen reader gets the same landmarks on every page, one heading of the first level, and a name of each link, field,
// button, picture and section.
func TestScreenReader(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	p.expect("status of 404")
	for _, width := range []int64{360, 1440} {
		p.resize(width)
		for _, path := range allPaths() {
			p.visit(path)
			at := fmt.Sprintf("%s at %d", path, width)
			nodes := p.accessibilityTree()
			for role, want := range map[string]int{"banner": 1, "main": 1, "contentinfo": 1, "RootWebArea": 1} {
				if n := len(names(nodes, role)); n != want {
					t.Errorf("%s: %d of %s, want %d", at, n, role, want)
				}
			}
			if diff := cmp.Diff([]string{"Management clusters", "Views"}, names(nodes, "navigation")); diff != "" {
				t.Errorf("%s: navigation:\n%s", at, diff)
			}
			for _, role := range []string{"link", "button", "searchbox", "textbox", "combobox", "image", "img", "region", "heading", "search", "DisclosureTriangle", "columnheader", "rowheader"} {
				if n := names(nodes, role); slices.Contains(n, "") {
					t.Errorf("%s: a %s has no name: %q", at, role, n)
				}
			}
			checkHeadings(p, at)
		}
	}
}

// checkHeadings checks that there is one heading of the first level, and that no level is left out below it.
func checkHeadings(p *tab, at string) {
	p.t.Helper()
	levels := eval[[]int](p, `[...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter(e => e.checkVisibility()).map(e => Number(e.nodeName[1]))`)
	for i, level := range levels {
		if (i == 0) != (level == 1) || i > 0 && level > levels[i-1]+1 {
			p.t.Errorf("%s: the levels of the headings are %v", at, levels)
			return
		}
	}
}

// The table of the fleet is a table with headers at every width, and the filter has labels.
func TestScreenReaderOfFleet(t *testing.T) {
	p := serve(t, demo(t)).open(t)
	for _, width := range []int64{360, 1440} {
		p.resize(width)
		p.visit(fleetPath)
		nodes := p.accessibilityTree()
		want := map[string][]string{
			"table":        {"Clusters, problems first"},
			"columnheader": {"Status", "Cluster", "Class", "Version", "Control plane", "Workers", "Reason", "Since"},
			"search":       {"Filter clusters"},
			"searchbox":    {"Filter"},
			"combobox":     {"Namespace", "Version", "Sort"},
			"textbox":      {"Labels"},
		}
		for role, want := range want {
			if diff := cmp.Diff(want, names(nodes, role), cmp.Comparer(strings.EqualFold)); diff != "" { // headers are shown in upper case
				t.Errorf("%s at %d:\n%s", role, width, diff)
			}
		}
		if n := len(names(nodes, "rowheader")); n != 13 {
			t.Errorf("at %d, %d rows have a header", width, n)
		}
	}
	if live := eval[string](p, `document.getElementById("counts").getAttribute("aria-live") + " " + document.getElementById("live").getAttribute("role")`); live != "polite status" {
		t.Errorf("updates are announced as %q", live)
	}
}
