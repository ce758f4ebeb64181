package plan

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/mirrortest"
)

func writeKubeconfig(t *testing.T, name, server string) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["m"] = &clientcmdapi.Cluster{Server: server}
	c.Contexts["m"] = &clientcmdapi.Context{Cluster: "m"}
	c.CurrentContext = "m"
	path := filepath.Join(t.TempDir(), name)
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSelections(t *testing.T) {
	for name, tc := range map[string]struct {
		kubeconfigs, contexts []string
		want                  []management.Flags
	}{
		"nothing":     {nil, nil, []management.Flags{{}}},
		"kubeconfigs": {[]string{"a", "b"}, nil, []management.Flags{{Kubeconfig: "a"}, {Kubeconfig: "b"}}},
		"contexts":    {[]string{"a"}, []string{"x", "y"}, []management.Flags{{Kubeconfig: "a", Context: "x"}, {Kubeconfig: "a", Context: "y"}}},
		"default":     {nil, []string{"x", "y"}, []management.Flags{{Context: "x"}, {Context: "y"}}},
		"pairs":       {[]string{"a", "b"}, []string{"x", "y"}, []management.Flags{{Kubeconfig: "a", Context: "x"}, {Kubeconfig: "b", Context: "y"}}},
		"unequal":     {[]string{"a", "b"}, []string{"x"}, nil},
		"too many":    {make([]string, 17), nil, nil},
	} {
		found, err := (&uiFlags{kubeconfigs: tc.kubeconfigs, contexts: tc.contexts}).selections()
		var got []management.Flags
		for _, f := range found {
			got = append(got, *f)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != (tc.want == nil) {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// The page describes the end of a wait as "slipway explain" does.
func TestPagePlan(t *testing.T) {
	r := manager.PlanRecord{Waits: []reconciler.Wait{{Reason: "A", Until: "change"}, {Reason: "B", Until: "change", On: []reconciler.Subject{{Kind: "Machine", Namespace: "ns", Name: "m"}}, Field: "spec.providerID"}}}
	var got []string
	for _, w := range pagePlan(r, causePlans(manager.ObjectPlans{Plans: []manager.PlanRecord{r}})[0]).Waits {
		got = append(got, w.Until)
	}
	if diff := cmp.Diff([]string{"Ends with the next event of the object.", "Ends when spec.providerID changes: Machine ns/m."}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRefusedAddress(t *testing.T) {
	cmd := UICommand(term.Env{Out: io.Discard, Err: io.Discard, Getenv: os.Getenv, Now: time.Now})
	cmd.SetArgs([]string{"--listen", "0.0.0.0:7180"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "not a loopback address") {
		t.Errorf("got %v", err)
	}
}

// A browser opens the printed address and reads the fleet of two management clusters, one of which is unreachable.
func TestCommand(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "demo"))
	good, gone := writeKubeconfig(t, "prod.kubeconfig", api.URL), writeKubeconfig(t, "dev.yaml", "http://127.0.0.1:1")
	read, write := io.Pipe()
	var stderr bytes.Buffer
	cmd := UICommand(term.Env{Out: write, Err: &stderr, Getenv: os.Getenv, Now: time.Now})
	cmd.SetArgs([]string{"--kubeconfig", good, "--kubeconfig", gone})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	address, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	address = strings.TrimSpace(address)
	base, _, _ := strings.Cut(address, "/?")
	page := get(t, browser, address)
	for limit := time.Now().Add(30 * time.Second); !strings.Contains(page, "<bdi>demo</bdi>"); page = get(t, browser, base+"/m/prod/") {
		if time.Now().After(limit) {
			t.Fatalf("the cluster is not shown:\n%s", page)
		}
		awaitChange(t, browser, base+"/events?page=/m/prod/&after=0")
	}
	if dev := get(t, browser, base+"/m/dev/"); !strings.Contains(dev, "cannot be read") {
		t.Errorf("the unreachable management cluster:\n%s", dev)
	}
	if stranger := get(t, http.DefaultClient, base+"/m/prod/"); strings.Contains(stranger, "demo") {
		t.Error("the page is readable without the token")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the command ended with %v", err)
	}
}

func get(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	response, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// awaitChange reads an event stream until its first event.
func awaitChange(t *testing.T, c *http.Client, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data:") {
			return
		}
	}
}
