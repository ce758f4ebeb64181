package interop

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// explains creates a simulated cluster, deletes the infrastructure template of its workers, and reads why it is broken: in
// `slipway explain` and on the page of `slipway ui`. The problem is gone when the remedy was carried out. foreign is true if the
// reference has the controllers of Clusters and MachineDeployments, which have no plans.
func (m *management) explains(t *testing.T, foreign bool) {
	m.apply(t, "fleet.yaml")
	m.nodes(t, "1")
	page := m.ui(t)
	var link string
	eventually(t, "the cluster on the fleet page", func() bool {
		link = clusterLink.FindString(page(t, "/"))
		return link != ""
	})

	template := m.kubectl(t, "get", "localmachinetemplate", "fleet-workers", "-o", "yaml")
	m.kubectl(t, "delete", "localmachinetemplate", "fleet-workers", "--wait=false")
	m.kubectl(t, "scale", "machinedeployment", "fleet-workers", "--replicas", "2")
	want := []string{"The template does not exist, and MachineDeployment fleet-workers refers to it", "create LocalMachineTemplate fleet-workers"}
	var out string
	eventually(t, "the missing template in explain", func() bool {
		out = m.slipway(t, "explain", "cluster/fleet")
		return hasAll(out, want)
	})
	contains(t, out, "LocalMachineTemplate fleet-workers, since ")
	if alone := strings.Contains(out, "The explanation uses conditions, owners and references alone."); alone != foreign {
		t.Errorf("without plans: %t, explain:\n%s", foreign, out)
	}
	eventually(t, "the missing template on the page", func() bool {
		out = page(t, link)
		return hasAll(out, want)
	})
	contains(t, out, "<time datetime=")
	m.kubectl(t, "apply", "-f", m.write(t, "template.yaml", template))
	m.nodes(t, "2")
	m.deletes(t, "fleet")
}

var clusterLink = regexp.MustCompile(`/m/[^/"]+/cluster/default/fleet`)

func hasAll(out string, texts []string) bool {
	for _, text := range texts {
		if !strings.Contains(out, text) {
			return false
		}
	}
	return true
}

// ui starts `slipway ui` for the management cluster until the test ends, and returns a function that reads a page.
func (m *management) ui(t *testing.T) func(t *testing.T, path string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, m.binary, "ui", "--kubeconfig", m.kubeconfig)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + m.folder}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
	})
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("slipway ui printed no address: %v", err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	read := func(t *testing.T, url string) string {
		t.Helper()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", url, response.Status, err)
		}
		return string(body)
	}
	first = strings.TrimSpace(first)
	read(t, first) // the token becomes a cookie
	base, _, _ := strings.Cut(first, "/?")
	return func(t *testing.T, path string) string {
		t.Helper()
		return read(t, base+path)
	}
}
