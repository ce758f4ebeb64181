package cluster

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/test/mirrortest"
	"github.com/slipwayhq/slipway/test/testkit"
)

func TestDescribeBeginsWithTheCause(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "bad")+"\n---\n"+mirrortest.Cluster("team", "good"))
	api.Put(t, mirrortest.Broken("team", "bad", "it belongs to another\nobject"))
	u := newListUser(t, api)
	out, _, err := u.run(DescribeClusterCommand, "bad")
	first, rest, _ := strings.Cut(out, "\n")
	want := "LocalMachine bad-md-a-1: it belongs to another object (since 5m); `slipway explain cluster/bad -n team --kubeconfig " + u.kubeconfig + "` has the remedy"
	if err != nil || first != want || !strings.HasPrefix(rest, "\nNAME") {
		t.Errorf("%v, the output begins with %q, want %q:\n%s", err, first, want, rest)
	}
	if out, _, err := u.run(DescribeClusterCommand, "good"); err != nil || !strings.HasPrefix(out, "NAME") {
		t.Errorf("%v, without a problem the output is:\n%s", err, out)
	}
	if out, _, err := u.run(DescribeClusterCommand, "bad", "-o", "json"); err != nil || !strings.HasPrefix(out, "{") {
		t.Errorf("%v, as data the output is:\n%s", err, out)
	}
	if help := DescribeClusterCommand(term.Env{}).Long; !strings.Contains(help, "With -o json or -o yaml, the output is the tree") {
		t.Errorf("the help is:\n%s", help)
	}
}

// With --watch, the cause is printed as well, and again when it changes.
func TestDescribeWatchBeginsWithTheCause(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "bad"))
	w := newListUser(t, api).watch(t, DescribeClusterCommand, "bad")
	w.await("NAME")
	api.Put(t, mirrortest.Broken("team", "bad", "it belongs to another object"))
	w.await("LocalMachine bad-md-a-1: it belongs to another object (since 5m); `slipway explain cluster/bad -n team")
	w.end()
}

// On a terminal, the remarks remain below the tree: the next frame would clear what was printed to standard error.
func TestDescribeWatchShowsRemarksOnTheScreen(t *testing.T) {
	screen, program := testkit.Terminal(t)
	now, root, stderr := time.Now(), &describe.Object{Kind: "Cluster", Name: "demo"}, &bytes.Buffer{}
	w := treeWatch{env: term.Env{Out: program, Err: stderr, Getenv: func(string) string { return "" }, Now: func() time.Time { return now }},
		cause: clusterCause{remarks: []string{"Causes may be missing, because of the test"}}, causeAt: now, tree: describe.Render(root, describe.Style{})}
	for range 2 {
		if err := w.show(t.Context(), root, describe.Style{}); err != nil {
			t.Fatal(err)
		}
		frame := make([]byte, 4096)
		n, err := screen.Read(frame)
		if _, remark, _ := strings.Cut(string(frame[:n]), "Cluster/demo"); err != nil || !strings.Contains(remark, "Causes may be missing") || stderr.Len() > 0 {
			t.Errorf("%v, the frame is %q, standard error %q", err, frame[:n], stderr)
		}
	}
}

// A terminal never scrolls, because that would retain the previous tree above the new one.
func TestDescribeWatchFits(t *testing.T) {
	w := treeWatch{cause: clusterCause{remarks: []string{"a remark"}}}
	tree := strings.Repeat("a line of the tree\n", 9)
	for name, tc := range map[string]struct {
		screen term.Screen
		want   string
	}{
		"all":          {term.Screen{Width: 80, Height: 24}, tree + "\na remark\n"},
		"unknown size": {term.Screen{}, tree + "\na remark\n"},
		"too many":     {term.Screen{Width: 80, Height: 10}, strings.Repeat("a line of the tree\n", 5) + "4 more lines do not fit on the terminal. Without --watch, all of them are printed.\n\na remark\n"},
	} {
		if diff := cmp.Diff(clearScreen+tc.want, w.drawing(tree, tc.screen)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
