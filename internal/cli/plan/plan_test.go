package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/plan"
	"github.com/slipwayhq/slipway/test/testkit"
)

var at = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

// clusters are manifests of some clusters like demo.
func clusters(t *testing.T, names ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range names {
		out = append(out, strings.NewReplacer("name: demo", "name: "+name, "clusterName: demo", "clusterName: "+name, "name: md", "name: "+name+"-md").Replace(string(text)))
	}
	return strings.Join(out, "---\n")
}

// emptyFolder is a copy of a management cluster without objects, with the kinds of this build.
func emptyFolder(t *testing.T) plan.Snapshot {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.ReadFolder(t.TempDir(), all)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// folder is a copy of a management cluster in which the clusters have come to rest.
func folder(t *testing.T, manifest string) string {
	t.Helper()
	o, err := simulationOptions(at.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := plan.ReadFiles([]string{"-"}, strings.NewReader(manifest))
	if err != nil {
		t.Fatal(err)
	}
	p, s, err := plan.Run(t.Context(), o, emptyFolder(t), plan.Change{Apply: objects})
	if err != nil || len(p.Refused) > 0 {
		t.Fatalf("%v %+v", err, p)
	}
	data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": s.Objects})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "copy.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// slipway runs the verb with a manifest on the standard input, and returns what it wrote and its exit code.
func slipway(t *testing.T, stdin string, args ...string) (string, int) {
	t.Helper()
	return slipwayAt(t, at, stdin, args...)
}

// slipwayAt runs the verb at a time.
func slipwayAt(t *testing.T, now time.Time, stdin string, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	e := term.Env{In: strings.NewReader(stdin), Out: &out, Err: &out, Getenv: func(string) string { return "" }, Now: func() time.Time { return now }}
	cmd := Command(e)
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(t.Context())
	var coded exitCode
	switch {
	case err == nil:
		return out.String(), 0
	case errors.As(err, &coded):
		return out.String(), coded.ExitCode()
	}
	return out.String() + fault.UserMessage(err) + "\n", 1
}

func TestPlan(t *testing.T) {
	ten := []string{"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"}
	one, fleet := folder(t, clusters(t, "demo")), folder(t, clusters(t, ten...))
	cases := map[string]struct {
		reason, dir, manifest string
		args                  []string
		code                  int
	}{
		"nothing":   {"as terraform plan -detailed-exitcode", one, clusters(t, "demo"), []string{"-f", "-"}, 0},
		"rollout":   {"fields, and the steps of the Machines", one, strings.Replace(clusters(t, "demo"), "      version: v1.36.3", "      version: v1.36.2", 1), []string{"-f", "-"}, 2},
		"metadata":  {"objects that change alike share an entry", one, strings.Replace(clusters(t, "demo"), "  template:\n    spec:\n      cluster", "  template:\n    metadata: {labels: {team: a}}\n    spec:\n      cluster", 1), []string{"-f", "-"}, 2},
		"fleet":     {"clusters that change alike share a block", fleet, strings.ReplaceAll(clusters(t, ten...), "replicas: 2", "replicas: 9"), []string{"-f", "-"}, 2},
		"refused":   {"as the API would say it", one, strings.Replace(clusters(t, "demo"), "replicas: 2", "replicas: -2", 1), []string{"-f", "-"}, 1},
		"delete":    {"", one, clusters(t, "demo"), []string{"--delete", "-"}, 2},
		"waits":     {"what stands still in the end is said", one, strings.Replace(clusters(t, "demo"), "      version: v1.36.3", "      version: v1.37.0", 1), []string{"-f", "-"}, 2},
		"typo":      {"a field that kubectl apply refuses", one, strings.Replace(clusters(t, "demo"), "replicas: 2", "replica: 2", 1), []string{"-f", "-"}, 1},
		"no files":  {"", one, "", nil, 1},
		"no YAML":   {"", one, "a: [", []string{"-f", "-"}, 1},
		"no folder": {"", one, "", []string{"-f", "testdata/no-such"}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text, code := slipway(t, tc.manifest, append(tc.args, "--offline", tc.dir)...)
			if code != tc.code {
				t.Errorf("%s: exit code %d, want %d\n%s", tc.reason, code, tc.code, text)
			}
			testkit.CompareGolden(t, "testdata/"+strings.ReplaceAll(name, " ", "-")+".txt", text)
		})
	}
	text, code := slipway(t, strings.Replace(clusters(t, "demo"), "replicas: 2", "replicas: 3", 1), "-f", "-", "--offline", one, "-o", "json")
	var p plan.Plan
	if err := json.Unmarshal([]byte(text), &p); err != nil || code != exitChanges || len(p.Rollouts) != 1 || p.Rollouts[0].Created != 1 {
		t.Errorf("%v, exit code %d\n%s", err, code, text)
	}
}
