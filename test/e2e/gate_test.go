package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/test/hooktest"
)

// sequence are the lifecycle hooks in the order in which a Cluster that is upgraded by one minor version comes by them.
var sequence = []string{
	"BeforeClusterCreate", "AfterControlPlaneInitialized", "BeforeClusterUpgrade", "BeforeControlPlaneUpgrade", "AfterControlPlaneUpgrade",
	"BeforeWorkersUpgrade", "AfterWorkersUpgrade", "AfterClusterUpgrade", "BeforeClusterDelete",
}

// hookGate is an extension in Python that holds back each hook until the test releases it: testdata/hooks.py.
type hookGate struct {
	in *installation
	// dir is where it reads what is released and writes what it was asked.
	dir     string
	cluster string
}

// call is one call that the gate got.
type call struct {
	Hook     string         `json:"hook"`
	Released bool           `json:"released"`
	Request  map[string]any `json:"request"`
	Problems []string       `json:"problems"`
}

// startGate runs the gate with the document that the binary prints, and registers it.
func (in *installation) startGate(cluster string) *hookGate {
	in.t.Helper()
	g := &hookGate{in: in, dir: in.t.TempDir(), cluster: cluster}
	authority := hooktest.NewAuthority(in.t)
	cert, key := authority.IssuePEM(hooktest.Certificate{})
	document := in.extension("", "openapi", "-o", "json")
	for name, content := range map[string]string{"openapi.json": document, "tls.crt": string(cert), "tls.key": string(key), "released": ""} {
		if err := os.WriteFile(filepath.Join(g.dir, name), []byte(content), 0o600); err != nil {
			in.t.Fatal(err)
		}
	}
	cmd := exec.Command("python3", "testdata/hooks.py", g.dir)
	cmd.Stderr = in.t.Output()
	if err := cmd.Start(); err != nil {
		in.t.Fatal(err)
	}
	in.t.Cleanup(func() {
		if in.t.Failed() {
			in.t.Log(in.picture(cluster))
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address := ""
	eventually(in.t, short, "the gate listens", func() error {
		text, err := os.ReadFile(filepath.Join(g.dir, "address"))
		address = string(text)
		return err
	})
	config, err := json.Marshal(map[string]any{
		"apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig", "metadata": map[string]any{"name": "gate"},
		"spec": map[string]any{
			"clientConfig": map[string]any{"url": "https://" + address, "caBundle": authority.PEM}, "settings": map[string]any{"of": "the registration"},
		},
	})
	if err != nil {
		in.t.Fatal(err)
	}
	in.apply(string(config))
	untilContains(in.t, short, "the gate is discovered", "True", func() string { return in.condition("extensionconfig/gate", "Discovered") })
	return g
}

func (g *hookGate) calls() []call {
	g.in.t.Helper()
	text, err := os.ReadFile(filepath.Join(g.dir, "calls.jsonl"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		g.in.t.Fatal(err)
	}
	var out []call
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var c call
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			g.in.t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// held is how often a hook was held back.
func (g *hookGate) held(hook string) (n int) {
	for _, c := range g.calls() {
		if c.Hook == hook && !c.Released {
			n++
		}
	}
	return n
}

// asked are the hooks that were called, each once, in order.
func (g *hookGate) asked() []string {
	var out []string
	for _, c := range g.calls() {
		if !slices.Contains(out, c.Hook) {
			out = append(out, c.Hook)
		}
	}
	return out
}

// holds waits until a hook is called, and sees that it holds back: as long as it does nothing that follows is called, state stays as it
// is, and both the condition and the verb say who holds back what, since when and how it goes on.
func (g *hookGate) holds(hook, action string, state func() []string) {
	t := g.in.t
	t.Helper()
	calls := func(n int) func() error {
		return func() error {
			if held := g.held(hook); held < n {
				return fmt.Errorf("%d calls of %s, of %v", held, hook, g.asked())
			}
			return nil
		}
	}
	eventually(t, long, hook+" is called", calls(1))
	before := state()
	eventually(t, short, hook+" is called again", calls(g.held(hook)+2))
	if diff := cmp.Diff(sequence[:slices.Index(sequence, hook)+1], g.asked()); diff != "" {
		t.Errorf("hooks that were called when %s holds back (-want +got):\n%s", hook, diff)
	}
	if diff := cmp.Diff(before, state()); diff != "" {
		t.Errorf("%s did not hold back (-before +after):\n%s", hook, diff)
	}
	says := fmt.Sprintf("handler %s.gate: nobody has released %s yet", strings.ToLower(hook), hook)
	untilContains(t, short, "the condition names the hook", fmt.Sprintf("Following hooks are blocking %s: %s: %s", action, hook, says), func() string {
		return g.in.condition("cluster/"+g.cluster, "TopologyReconciled")
	})
	row := regexp.MustCompile(fmt.Sprintf(`HookBlocking +True +HookBlocking +\d+\w+ +Hook %s: %s; it blocks the %s and is called again in 1s`, hook, says, action))
	eventually(t, short, "the verb says that "+hook+" holds back", func() error {
		if picture := g.in.picture(g.cluster); !row.MatchString(picture) {
			return fmt.Errorf("\n%s", picture)
		}
		return nil
	})
}

// release lets a hook go and waits until it was called. Its request has these fields, beside the Cluster and what every request has.
func (g *hookGate) release(hook string, fields map[string]any) {
	t := g.in.t
	t.Helper()
	file, err := os.OpenFile(filepath.Join(g.dir, "released"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(file, hook); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, short, hook+" is let go", func() error {
		if !slices.ContainsFunc(g.calls(), func(c call) bool { return c.Hook == hook && c.Released }) {
			return fmt.Errorf("called %v", g.asked())
		}
		return nil
	})
	want := map[string]any{
		"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "kind": hook + "Request", "settings": map[string]any{"of": "the registration"},
	}
	for name, value := range fields {
		want[name] = value
	}
	for _, c := range g.calls() {
		if c.Hook != hook {
			continue
		}
		cluster, _ := c.Request["cluster"].(map[string]any)
		metadata, _ := cluster["metadata"].(map[string]any)
		if metadata["name"] != g.cluster || metadata["managedFields"] != nil || cluster["status"] != nil || cluster["apiVersion"] != "cluster.x-k8s.io/v1beta2" {
			t.Errorf("the Cluster in a request of %s: %v", hook, cluster)
		}
		delete(c.Request, "cluster")
		if diff := cmp.Diff(want, c.Request); diff != "" {
			t.Errorf("a request of %s (-want +got):\n%s", hook, diff)
		}
	}
}

// ended sees that every hook let go once, and that every request was as the document says.
func (g *hookGate) ended() {
	t := g.in.t
	t.Helper()
	var released []string
	for _, c := range g.calls() {
		if c.Released {
			released = append(released, c.Hook)
		}
		if len(c.Problems) > 0 {
			t.Errorf("a request of %s is not what the OpenAPI document says: %v", c.Hook, c.Problems)
		}
	}
	if diff := cmp.Diff(sequence, released); diff != "" {
		t.Errorf("hooks that let go (-want +got):\n%s", diff)
	}
}
