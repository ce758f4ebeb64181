package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// webhookPackages are those of the reference whose tests test its webhooks, by the names that testdata/webhooks.yaml has for them.
var webhookPackages = map[string]string{
	"core":          "core/webhooks/admission",
	"bootstrap":     "bootstrap/kubeadm/webhooks/admission",
	"control-plane": "controlplane/kubeadm/webhooks/admission",
}

// The reference's tests of its webhooks, unchanged, test the admission of Slipway: in a copy of the module its webhooks call ours.
// testdata/webhooks.yaml lists the tests that fail and those in which the two differ, each with a reason.
func TestReferenceWebhooks(t *testing.T) {
	copied := copyOfReference(t)
	for _, folder := range webhookPackages {
		rewriteWebhooks(t, filepath.Join(copied, folder))
	}
	tests := runWebhookTests(t, copied, reviews(t))
	differences := map[string]string{} // outcomes by tests
	passed, reviewed := 0, 0
	for name, r := range tests {
		if outcome := r.outcome(); r.differs() {
			differences[name] = outcome
		} else if r.action == "pass" {
			passed++
			if len(r.reviews) > 0 {
				reviewed++
			}
		}
	}
	t.Logf("of %d tests of the reference, %d pass with the same results, %d of them with reviews of objects", len(tests), passed, reviewed)
	compareJudgements(t, "testdata/webhooks.yaml", differences, tests)
}

// copyOfReference is a copy of the reference's module with the shim. Its place is always the same, so that it is compiled once.
func copyOfReference(t *testing.T) string {
	t.Helper()
	to, err := filepath.Abs("../../dist/interop.reference")
	if err != nil {
		t.Fatal(err)
	}
	module := strings.TrimSpace(goCommand(t, ".", "list", "-m", "-f", "{{.Dir}} {{.Version}}", "sigs.k8s.io/cluster-api"))
	from, version, _ := strings.Cut(module, " ")
	copyFolder(t, from, to)
	copyFolder(t, "testdata/shim", filepath.Join(to, "internal/slipway"))
	const api = "sigs.k8s.io/cluster-api/api"
	goCommand(t, to, "mod", "edit", "-dropreplace", api, "-require", api+"@"+version)
	own, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.OpenFile(filepath.Join(to, "go.sum"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sums.Close() }()
	for line := range strings.Lines(string(own)) {
		if strings.HasPrefix(line, api+" ") {
			if _, err := sums.WriteString(line); err != nil {
				t.Fatal(err)
			}
		}
	}
	return to
}

func goCommand(t *testing.T, folder string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Stderr = folder, &bytes.Buffer{}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, cmd.Stderr)
	}
	return string(out)
}

// reviews runs the program that answers admission reviews as Slipway does, and returns its URL.
func reviews(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "reviews")
	goCommand(t, "../..", "build", "-pgo=off", "-o", program, "./test/reviews")
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("reading the URL of %s: %v", program, err)
	}
	return strings.TrimSpace(url)
}

// outcome is what the shim prints about a review.
type outcome struct{ Call, Outcome, Reference, Slipway, Schema string }

// tested is what is known of a test of the reference.
type tested struct {
	action      string // pass, fail or skip; empty: it did not end
	reviews     []outcome
	output      []string
	line        string // the begin of the next line
	childFailed bool
}

// outcomes of reviews from the most to the least important one. The last one is a test that fails without a review.
var outcomes = []string{"refused", "accepted", "defaults", "warnings", "schema", "same", "none"}

// outcome is the most important one of a test's reviews.
func (r *tested) outcome() string {
	out := "none"
	for _, o := range r.reviews {
		if slices.Index(outcomes, o.Outcome) < slices.Index(outcomes, out) {
			out = o.Outcome
		}
	}
	return out
}

// differs reports whether a test fails by itself, or the two differ in it.
func (r *tested) differs() bool {
	return r.action != "pass" && r.action != "skip" && !r.childFailed || slices.Index(outcomes, r.outcome()) < slices.Index(outcomes, "schema")
}

// runWebhookTests runs the tests of all packages, and returns them by name: the package, a space and the name in Go.
func runWebhookTests(t *testing.T, folder, url string) map[string]*tested {
	t.Helper()
	args := []string{"test", "-vet=off", "-pgo=off", "-count=1", "-json"}
	names := map[string]string{}
	for name, p := range webhookPackages {
		args = append(args, "./"+p)
		names["sigs.k8s.io/cluster-api/"+p] = name
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env, cmd.Stderr = folder, append(os.Environ(), "SLIPWAY_REVIEWS="+url), os.Stderr
	out, failure := cmd.Output() // it fails when a test does
	tests := map[string]*tested{}
	known := map[string]bool{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var e struct{ Action, Package, Test, Output string }
		if err := d.Decode(&e); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("reading what go test printed: %v (%v)", err, failure)
		}
		if e.Test == "" {
			if e.Action == "build-output" || strings.HasPrefix(e.Output, "panic:") {
				t.Error(strings.TrimSpace(e.Output))
			}
			continue
		}
		name := names[e.Package] + " " + e.Test
		known[names[e.Package]] = true
		r := tests[name]
		if r == nil {
			r = &tested{}
			tests[name] = r
		}
		r.add(t, e.Action, e.Output)
		if parent := tests[name[:max(0, strings.LastIndex(name, "/"))]]; e.Action == "fail" && parent != nil {
			parent.childFailed = true
		}
	}
	if len(known) < len(webhookPackages) {
		t.Fatalf("only tests of %v ran: %v", known, failure)
	}
	return tests
}

// add adds what go test printed about a test.
func (r *tested) add(t *testing.T, action, output string) {
	t.Helper()
	switch action {
	case "pass", "fail", "skip":
		r.action = action
	case "output": // a long line is printed in several parts
		if r.line += output; !strings.HasSuffix(r.line, "\n") {
			return
		}
		output, r.line = r.line, ""
		if text, ok := strings.CutPrefix(output, "slipway-review: "); ok {
			var o outcome
			if err := json.Unmarshal([]byte(text), &o); err != nil {
				t.Fatalf("reading a review: %v: %s", err, output)
			}
			r.reviews = append(r.reviews, o)
			return
		}
		r.output = append(r.output, output)
	}
}
