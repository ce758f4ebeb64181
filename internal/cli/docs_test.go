package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
)

func TestRender(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, page string
		style        style
		want         string
	}{
		"heading": {"headings are underlined without colors", "# A `page`\n\n## Part\ntext", style{Width: 40},
			"A `page`\n========\n\nPart\n----\n\ntext\n"},
		"colors": {"code and headings are marked, and a mark does not continue on the next line", "# A `page`\n\nRun `slipway up` now", style{Width: 12, Color: true},
			"\x1b[1mA page\x1b[0m\n\nRun \x1b[36mslipway\x1b[0m\n\x1b[36mup\x1b[0m now\n"},
		"paragraph": {"lines are joined and wrapped", "one two\nthree four five\n\nsix", style{Width: 14},
			"one two three\nfour five\n\nsix\n"},
		"long word": {"a word that is wider than a line is broken", "abcdefghijklmnopqrst", style{Width: 12}, "abcdefghijkl\nmnopqrst\n"},
		"code":      {"code is indented and not wrapped", "```sh\n$ slipway   up --listen 127.0.0.1:6440\n# no heading\n```", style{Width: 20}, "    $ slipway   up --listen 127.0.0.1:6440\n    # no heading\n"},
		"indented":  {"an indented block outside lists is code", "text:\n\n    a\n      b\n\n    c\n\nend", style{Width: 20}, "text:\n\n    a\n      b\n\n    c\n\nend\n"},
		"lists": {"items follow each other, and their text is indented", "Do:\n\n1. first item that is long\n   and goes on\n2. second\n\n   ```\n   x\n   ```\n- a\n  - b", style{Width: 16},
			"Do:\n\n1. first item\n   that is long\n   and goes on\n2. second\n\n       x\n- a\n  - b\n"},
		"links": {"links name the command or the address", "[Install](install.md), [ports](local.md#ports), [here](#part), [book](https://example.com/x), [why](decisions/0001-x.md), ![a drawing](a.svg)", style{Width: 400},
			"Install (slipway docs install), ports (slipway docs local#ports), here, book (https://example.com/x), why, [Picture: a drawing]\n"},
		"spans": {"emphasis has no asterisks, and escaped characters have no backslash", "**Note:** `a|*b*` is \\*not\\* x &lt;y> a*b [`slipway up`](cli.md)", style{Width: 80},
			"Note: `a|*b*` is *not* x <y> a*b `slipway up` (slipway docs cli)\n"},
		"table": {"columns are aligned", "| Kind | Use |\n|---|---|\n| `a\\|b` | x |\n| | y |", style{Width: 40},
			"Kind   Use\n-----  ---\n`a|b`  x\n       y\n"},
		"wide table": {"wide cells are wrapped, narrow columns are not", "| K | Meaning |\n|:--|--:|\n| a | one two three four |\n| b | x |", style{Width: 17},
			"K  Meaning\n-  --------------\na  one two three\n   four\nb  x\n"},
		"no end": {"code without an end is printed", "```\nx", style{Width: 20}, "    x\n"},
		"empty":  {"an empty page is empty", "", style{Width: 20}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, render(tc.page, tc.style)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Every page of the repository is rendered without loss: its words are there, and no line but code is too wide.
func TestPagesAreRendered(t *testing.T) {
	all, err := topics()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 40 {
		t.Fatalf("only %d topics", len(all))
	}
	for _, topic := range all {
		page, err := find(topic.Name)
		if err != nil {
			t.Fatal(err)
		}
		if page.Title == "" || page.Text == "" {
			t.Errorf("topic %s has no title or no text", topic.Name)
		}
		if !topic.isPage() {
			continue
		}
		text := render(page.Text, style{Width: 80})
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\n"); widthOf(line) > 80 && !strings.HasPrefix(line, "    ") {
				t.Errorf("%s: the line %q has %d columns", topic.Name, line, widthOf(line))
			}
			if strings.HasPrefix(line, "|") || strings.ContainsAny(line, "\x00\x01\x02\x03") {
				t.Errorf("%s: not rendered: %q", topic.Name, line)
			}
		}
	}
}

func TestFind(t *testing.T) {
	for name, tc := range map[string]struct{ argument, begins, problem string }{
		"name":            {"quickstart", "# ", ""},
		"path":            {"docs/local.md", "# Local clusters\n", ""},
		"section":         {"local#localcluster", "## LocalCluster\n", ""},
		"manifest":        {"kube-state-metrics.yaml", "", ""},
		"unknown":         {"snapshots", "", "similar: etcd-snapshots"},
		"unknown, alone":  {"zzz", "", `there is no topic "zzz"; `},
		"unknown section": {"local#nope", "", "localcluster"},
		"parent":          {"../README", "", "there is no topic"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := find(tc.argument)
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) || fault.KindOf(err) != fault.Gone {
					t.Errorf("got %v, want an error with %q", err, tc.problem)
				}
				return
			}
			if err != nil || !strings.HasPrefix(got.Text, tc.begins) {
				t.Errorf("got %q, %v", got.Text[:min(80, len(got.Text))], err)
			}
		})
	}
}

func TestSection(t *testing.T) {
	page := "# A\n\n## B c\n\ntext\n```\n# code\n```\n### D\n\nmore\n## E\n"
	text, known := sectionOf(page, "b-c")
	if want := "## B c\n\ntext\n```\n# code\n```\n### D\n\nmore\n"; text != want {
		t.Errorf("got %q", text)
	}
	if diff := cmp.Diff([]string{"a", "b-c", "d", "e"}, known); diff != "" {
		t.Error(diff)
	}
}

func TestDocsCommand(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"list":     {nil, []string{"TOPIC ", "quickstart ", "Print one with: slipway docs TOPIC"}},
		"page":     {[]string{"local"}, []string{"Local clusters\n==============\n"}},
		"markdown": {[]string{"local", "-o", "markdown"}, []string{"# Local clusters\n", "| Kind | "}},
		"json":     {[]string{"local", "-o", "json"}, []string{`"title": "Local clusters"`, `"text": "# Local clusters\n`}},
		"manifest": {[]string{"cluster-autoscaler.yaml"}, []string{"apiVersion: "}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := docsCommand(term.Env{Out: &out, Getenv: func(string) string { return "" }})
			cmd.SetArgs(tc.args)
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is missing in:\n%s", want, out.String())
				}
			}
		})
	}
}
