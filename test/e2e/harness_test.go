package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// busyboxImage is the small image in every node.
const busyboxImage = "slipway.dev/busybox:1.35.0"

// Deadlines are generous: they only end a test that would hang. How fast things are is measured by test/bench.
const (
	short = 90 * time.Second
	long  = 5 * time.Minute
	pause = 250 * time.Millisecond
)

// installation is one management cluster of a test.
type installation struct {
	t       *testing.T
	binary  string
	dataDir string
	listen  string
	env     []string
}

// newInstallation returns an installation that is not running yet. It is removed with all it made when the test ends.
func newInstallation(t *testing.T) *installation {
	t.Helper()
	binary, err := apiserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "slipway-e2e-") // t.TempDir's path is too long for a unix socket
	if err != nil {
		t.Fatal(err)
	}
	in := &installation{t: t, binary: binary, dataDir: filepath.Join(dir, "data"), listen: "127.0.0.1:0"}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the installation:\n%s", tail(filepath.Join(in.dataDir, "log", "slipway.log"), 60))
		}
		if out, err := in.try("down", "--delete"); err != nil {
			t.Errorf("down --delete: %v\n%s", err, out)
		}
		_ = os.RemoveAll(dir)
	})
	return in
}

// with returns the installation for a subtest.
func (in *installation) with(t *testing.T) *installation {
	c := *in
	c.t = t
	return &c
}

func (w workload) with(t *testing.T) workload { return workload{w.in.with(t), w.kubeconfig} }

// up starts the management cluster and waits until it is ready.
func (in *installation) up() {
	in.t.Helper()
	in.run("up", "--detach", "--listen", in.listen)
}

// run runs a verb and fails the test if that fails.
func (in *installation) run(args ...string) string {
	in.t.Helper()
	out, err := in.try(args...)
	if err != nil {
		in.t.Fatalf("slipway %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// try runs a verb on this installation; the error has what it said.
func (in *installation) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	return in.within(ctx, args...)
}

func (in *installation) within(ctx context.Context, args ...string) (string, error) {
	switch {
	case args[0] != "kubectl":
		args = append(args, "--data-dir", in.dataDir)
	case args[1] != "--kubeconfig":
		args = append([]string{"kubectl", "--kubeconfig", filepath.Join(in.dataDir, "kubeconfig")}, args[1:]...)
	}
	cmd := exec.CommandContext(ctx, in.binary, args...)
	cmd.Env = append(append(os.Environ(), in.env...), "NO_COLOR=1")
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return out.String() + problem.String(), fmt.Errorf("%w: %s", err, strings.TrimSpace(problem.String()))
	}
	return out.String(), nil
}

// kubectl runs kubectl against the management cluster.
func (in *installation) kubectl(args ...string) string {
	in.t.Helper()
	return in.run(append([]string{"kubectl"}, args...)...)
}

// get returns what a JSONPath says of an object of the management cluster; empty where there is nothing.
func (in *installation) get(object, path string) string {
	out, err := in.try("kubectl", "get", object, "-o", "jsonpath="+path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// condition returns status, reason and message of a condition.
func (in *installation) condition(object, conditionType string) string {
	return in.get(object, fmt.Sprintf(`{range .status.conditions[?(@.type=="%s")]}{.status} {.reason}: {.message}{end}`, conditionType))
}

// apply applies a manifest to the management cluster.
func (in *installation) apply(manifest string) {
	in.t.Helper()
	file := filepath.Join(in.t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		in.t.Fatal(err)
	}
	in.kubectl("apply", "-f", file)
}

// workload is a workload cluster, reached by its kubeconfig.
type workload struct {
	in         *installation
	kubeconfig string
}

// workload writes the kubeconfig of a cluster and returns the cluster.
func (in *installation) workload(name string) workload {
	in.t.Helper()
	file := filepath.Join(in.t.TempDir(), name+".kubeconfig")
	if err := os.WriteFile(file, []byte(in.run("get", "kubeconfig", name)), 0o600); err != nil {
		in.t.Fatal(err)
	}
	return workload{in, file}
}

func (w workload) try(args ...string) (string, error) {
	return w.in.try(append([]string{"kubectl", "--kubeconfig", w.kubeconfig}, args...)...)
}

func (w workload) kubectl(args ...string) string {
	w.in.t.Helper()
	out, err := w.try(args...)
	if err != nil {
		w.in.t.Fatalf("workload kubectl %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// readyNodes returns the names of the Nodes that are Ready.
func (w workload) readyNodes() []string {
	out, err := w.try("get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name} {range .status.conditions[?(@.type=="Ready")]}{.status}{end}{"\n"}{end}`)
	if err != nil {
		return nil
	}
	var names []string
	for _, line := range strings.Split(out, "\n") {
		if name, ready := strings.CutSuffix(line, " True"); ready {
			names = append(names, name)
		}
	}
	return names
}

// eventually waits until the check returns nil.
func eventually(t *testing.T, within time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v: %v", what, within, err)
		}
		time.Sleep(pause)
	}
}

// until waits until the value is the wanted one.
func until(t *testing.T, within time.Duration, what, want string, value func() string) {
	t.Helper()
	eventually(t, within, what, func() error {
		if got := value(); got != want {
			return fmt.Errorf("have %q, want %q", got, want)
		}
		return nil
	})
}

// untilContains waits until the value contains the text.
func untilContains(t *testing.T, within time.Duration, what, text string, value func() string) {
	t.Helper()
	eventually(t, within, what, func() error {
		if got := value(); !strings.Contains(got, text) {
			return fmt.Errorf("have %q, want %q in it", got, text)
		}
		return nil
	})
}

// untilReady waits until the cluster has so many Ready Nodes, and returns it.
func (in *installation) untilReady(cluster string, nodes int) workload {
	in.t.Helper()
	eventually(in.t, long, "kubeconfig of "+cluster, func() error {
		_, err := in.try("get", "kubeconfig", cluster)
		return err
	})
	w := in.workload(cluster)
	eventually(in.t, long, fmt.Sprintf("%d Ready Nodes of %s", nodes, cluster), func() error {
		if ready := w.readyNodes(); len(ready) != nodes {
			return fmt.Errorf("have %v\n%s", ready, in.picture(cluster))
		}
		return nil
	})
	return w
}

// picture is the tree of a cluster, for messages.
func (in *installation) picture(cluster string) string {
	out, err := in.try("describe", "cluster", cluster, "--show-conditions", "all")
	if err != nil {
		return err.Error()
	}
	return out
}

// docker runs the docker command and returns its lines.
func docker(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("docker", args...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, exit.Stderr)
		}
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// leftovers are the containers, volumes and networks of the installation.
func (in *installation) leftovers(instance string) []string {
	in.t.Helper()
	filter := "label=dev.slipway.instance=" + instance
	var out []string
	for _, args := range [][]string{{"ps", "-aq"}, {"volume", "ls", "-q"}, {"network", "ls", "-q"}} {
		out = append(out, docker(in.t, append(args, "--filter", filter)...)...)
	}
	return out
}

// instance is the id that the installation's objects on the host carry.
func (in *installation) instance() string {
	in.t.Helper()
	id, err := os.ReadFile(filepath.Join(in.dataDir, "instance"))
	if err != nil {
		in.t.Fatal(err)
	}
	return strings.TrimSpace(string(id))
}

func tail(file string, lines int) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// quickstart is examples/without-class.yaml with its own name and number of workers, on a range that is free.
func quickstart(t *testing.T, name string, workers int) string {
	t.Helper()
	data, err := os.ReadFile("../../examples/without-class.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), "quickstart", name)
	text = strings.ReplaceAll(text, "172.30.", freeNetwork(t))
	return strings.ReplaceAll(text, "replicas: 2", fmt.Sprintf("replicas: %d", workers))
}

// freeNetwork is the first half of a /16 that no Docker network has: what an earlier run left behind, because it was
// killed, must not fail this one.
func freeNetwork(t *testing.T) string {
	t.Helper()
	used := strings.Join(docker(t, append([]string{"network", "inspect", "--format", "{{range .IPAM.Config}}{{.Subnet}} {{end}}"},
		docker(t, "network", "ls", "-q")...)...), " ")
	for n := 29; n > 17; n-- {
		if half := fmt.Sprintf("172.%d.", n); !strings.Contains(used, half) {
			return half
		}
	}
	t.Fatalf("every /16 that tests may use is taken by Docker networks: %s", used)
	return ""
}
