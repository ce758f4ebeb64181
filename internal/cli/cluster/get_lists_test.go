package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/fleet/mirror"
	"github.com/slipwayhq/slipway/internal/rootcause"
	"github.com/slipwayhq/slipway/test/mirrortest"
)

// listUser runs the lists against an API with objects.
type listUser struct{ kubeconfig string }

func newListUser(t *testing.T, api *mirrortest.API) listUser {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["m"] = &clientcmdapi.Cluster{Server: api.URL}
	c.Contexts["m"] = &clientcmdapi.Context{Cluster: "m", Namespace: "team"}
	c.CurrentContext = "m"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return listUser{path}
}

func (u listUser) run(command func(term.Env) *cobra.Command, args ...string) (out, stderr string, err error) {
	var o, e bytes.Buffer
	cmd := command(term.Env{In: strings.NewReader(""), Out: &o, Err: &e, Getenv: os.Getenv, Now: mirrortest.Now})
	cmd.SetArgs(append(args, "--kubeconfig", u.kubeconfig))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(context.Background())
	return o.String(), e.String(), err
}

func TestLists(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "bad")+"\n---\n"+mirrortest.Cluster("team", "all-good")+"\n---\n"+mirrortest.Cluster("other", "demo"))
	api.Put(t, mirrortest.Broken("team", "bad", "Container bad-md-a-1 belongs to another\t\x1b[31mobject"))
	u := newListUser(t, api)
	for name, tc := range map[string]struct {
		command func(term.Env) *cobra.Command
		args    string
		want    string
	}{
		"clusters": {GetClustersCommand, "", `
NAME      CLASS  VERSION  CONTROL PLANE  WORKERS  STATUS   SINCE  REASON
all-good  local  v1.36.0  1/1            1/1      Healthy  -      -
bad       local  v1.36.0  1/1            0/1      Problem  5m     LocalMachine bad-md-a-1: Container bad-md-a-1 belongs to another \x1b[31mobject
`},
		"by trouble, all namespaces": {GetClustersCommand, "-A --sort-by trouble -l team=a", `
NAMESPACE  NAME      CLASS  VERSION  CONTROL PLANE  WORKERS  STATUS   SINCE  REASON
team       bad       local  v1.36.0  1/1            0/1      Problem  5m     LocalMachine bad-md-a-1: Container bad-md-a-1 belongs to another \x1b[31mobject
other      demo      local  v1.36.0  1/1            1/1      Healthy  -      -
team       all-good  local  v1.36.0  1/1            1/1      Healthy  -      -
`},
		"problems": {GetClustersCommand, "--problems -n other", ""},
		"machines": {GetMachinesCommand, "-l cluster.x-k8s.io/cluster-name=all-good", `
CLUSTER   NAME             NODE                  VERSION  READY  UP TO DATE  STATUS   SINCE  REASON
all-good  all-good-cp      all-good-cp-node      v1.36.0  True   True        Healthy  -      -
all-good  all-good-md-a-1  all-good-md-a-1-node  v1.36.0  True   True        Healthy  -      -
`},
		"nodes": {GetNodesCommand, "-n other -o wide", `
CLUSTER  NAME              ROLE           VERSION  READY  STATUS   SINCE  MACHINE      ADDRESS     OS IMAGE   KERNEL  CONTAINER RUNTIME  AGE  REASON
demo     demo-cp-node      control-plane  v1.36.0  Ready  Healthy  -      demo-cp      172.30.0.5  Debian 12  6.1     containerd://2.1   2d   -
demo     demo-md-a-1-node  worker         v1.36.0  Ready  Healthy  -      demo-md-a-1  172.30.0.5  Debian 12  6.1     containerd://2.1   2d   -
`},
	} {
		out, stderr, err := u.run(tc.command, strings.Fields(tc.args)...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), out); diff != "" {
			t.Errorf("%s (stderr %q):\n%s", name, stderr, diff)
		}
	}
	if _, stderr, _ := u.run(GetClustersCommand, "--problems", "-n", "other"); stderr != "There are no clusters with a problem in namespace other; -A lists all namespaces.\n" {
		t.Errorf("no problems: %q", stderr)
	}
}

// The long texts are the last columns, so that they do not widen the others, and remedies have their command.
func TestWideLists(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "bad"))
	api.Put(t, mirrortest.Broken("team", "bad", "it belongs to another object"))
	for kind, command := range map[string]func(term.Env) *cobra.Command{"clusters": GetClustersCommand, "machines": GetMachinesCommand} {
		out, _, err := newListUser(t, api).run(command, "--problems", "-o", "wide")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if err != nil || len(lines) != 2 || !strings.HasSuffix(strings.Join(strings.Fields(lines[0]), " "), " AGE REASON REMEDY") ||
			!strings.Contains(lines[1], "it belongs to another object") || !strings.Contains(lines[1], " (docker ps --all") || !strings.HasSuffix(lines[1], ")") {
			t.Errorf("%s: %v\n%s", kind, err, out)
		}
	}
}

// Wide lists do not shorten reasons, and separate the items of a list.
func TestWholeReasons(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "bad"))
	api.Put(t, mirrortest.Broken("team", "bad", "Problems:\n* one "+strings.Repeat("word ", 40)+"\n* two"))
	for args, want := range map[string]string{"--problems": " …", "--problems -o wide": "Problems: one " + strings.Repeat("word ", 39) + "word; two"} {
		for kind, command := range map[string]func(term.Env) *cobra.Command{"clusters": GetClustersCommand, "machines": GetMachinesCommand} {
			if out, _, err := newListUser(t, api).run(command, strings.Fields(args)...); err != nil || !strings.Contains(out, want) {
				t.Errorf("%s: %v\n%s", kind, err, out)
			}
		}
	}
}

// --problems reports the paused clusters that it does not list.
func TestPausedAreReported(t *testing.T) {
	pausedCluster := func(name string) string {
		return strings.Replace(mirrortest.Cluster("team", name), "spec:\n  infra", "spec:\n  paused: true\n  infra", 1)
	}
	api := mirrortest.Start(t, pausedCluster("a")+"\n---\n"+mirrortest.Cluster("other", "b"))
	const one = "1 paused cluster is not listed: list it without --problems.\n"
	for args, want := range map[string]string{
		"--problems":          one + "There are no clusters with a problem in namespace team; -A lists all namespaces.\n",
		"--problems -A":       one + "There are no clusters with a problem.\n",
		"--problems -n other": "There are no clusters with a problem in namespace other; -A lists all namespaces.\n",
		"":                    "",
	} {
		if _, stderr, err := newListUser(t, api).run(GetClustersCommand, strings.Fields(args)...); err != nil || stderr != want {
			t.Errorf("%q: %v, %q", args, err, stderr)
		}
	}
	api.Put(t, pausedCluster("c"))
	if _, stderr, _ := newListUser(t, api).run(GetClustersCommand, "--problems"); !strings.HasPrefix(stderr, "2 paused clusters are not listed: list them without --problems.\n") {
		t.Errorf("two: %q", stderr)
	}
}

func TestListsAsData(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "bad"))
	api.Put(t, mirrortest.Broken("team", "bad", "it belongs to another object"))
	out, _, err := newListUser(t, api).run(GetClustersCommand, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	for key, want := range map[string]any{
		"name": "bad", "version": "v1.36.0", "health": "Problem", "object": "LocalMachine bad-md-a-1", "reason": "LocalMachine bad-md-a-1: it belongs to another object",
		"since": "2026-05-04T11:55:00Z", "needsUser": true, "available": "True", "phase": "Provisioned",
	} {
		if diff := cmp.Diff(want, rows[0][key]); diff != "" {
			t.Errorf("%s:\n%s", key, diff)
		}
	}
	if remedy, _ := rows[0]["remedy"].(string); remedy == "" {
		t.Errorf("no remedy: %s", out)
	}
	for _, command := range []func(term.Env) *cobra.Command{GetMachinesCommand, GetNodesCommand} {
		if out, _, err := newListUser(t, api).run(command, "-n", "none", "-o", "json"); err != nil || out != "[]\n" {
			t.Errorf("an empty list is %q, %v", out, err)
		}
	}
}

func TestListFlags(t *testing.T) {
	u := newListUser(t, mirrortest.Start(t, mirrortest.Cluster("team", "a")))
	for args, want := range map[string]string{
		"--sort-by size":  "--sort-by",
		"-l ===":          "is not a label selector",
		"--watch -o json": "--watch cannot be used with --output json",
		"-o table":        "unknown output format",
	} {
		fields := strings.Fields(args)
		if _, _, err := u.run(GetClustersCommand, fields...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestListWithoutPermission(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	api.Forbid("localmachines")
	if out, stderr, err := newListUser(t, api).run(GetClustersCommand); err != nil || !strings.Contains(out, "Healthy") && !strings.Contains(out, "Problem") || !strings.Contains(stderr, "LocalMachine.infrastructure.slipway.dev") {
		t.Errorf("%v, %q, %q", err, out, stderr)
	}
	for _, resource := range []string{"clusters", "machines", "machinepools"} {
		api.Forbid(resource)
	}
	for kind, command := range map[string]func(term.Env) *cobra.Command{"clusters": GetClustersCommand, "machines": GetMachinesCommand, "nodes": GetNodesCommand} {
		for args, where := range map[string]string{"": "in namespace team", "-A": "of all namespaces", "--watch": "in namespace team"} {
			want := "the " + kind + " " + where + " cannot be listed: you may not list and watch this kind"
			out, stderr, err := newListUser(t, api).run(command, strings.Fields(args)...)
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.UserMessage(err), want) || out != "" {
				t.Errorf("get %s %s: %v, want %q (%q, %q)", kind, args, err, want, out, stderr)
			}
		}
	}
}

// A kind of further rows that cannot be read is reported.
func TestNodesWithoutMachinePools(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	api.Forbid("machinepools")
	out, stderr, err := newListUser(t, api).run(GetNodesCommand)
	if err != nil || !strings.Contains(out, "a-cp-node") || stderr != "Nodes may be missing, because these kinds cannot be read: MachinePool.cluster.x-k8s.io.\n" {
		t.Errorf("%v, %q, %q", err, out, stderr)
	}
}

// Nodes are listed from Machines and MachinePools alone, and requests name the command.
func TestListRequests(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	var agents sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/machines") {
			agents.Store(r.UserAgent(), true)
		}
		api.ServeHTTP(w, r)
	}))
	defer server.Close()
	if _, _, err := newListUser(t, &mirrortest.API{URL: server.URL}).run(GetNodesCommand); err != nil {
		t.Fatal(err)
	}
	var lists []string
	for _, r := range api.Requests() {
		if strings.HasPrefix(r, "GET /apis/cluster.x-k8s.io/v1beta2/") || strings.Contains(r, "slipway.dev/v1alpha1/") {
			lists = append(lists, r)
		}
	}
	slices.Sort(lists)
	if diff := cmp.Diff([]string{"GET /apis/cluster.x-k8s.io/v1beta2/namespaces/team/machinepools", "GET /apis/cluster.x-k8s.io/v1beta2/namespaces/team/machines"}, lists); diff != "" {
		t.Error(diff)
	}
	agents.Range(func(agent, _ any) bool {
		if agent != "slipway-get" {
			t.Errorf("the user agent is %q", agent)
		}
		return true
	})
}

// A search that ends at a limit is reported.
func TestListsReportLimits(t *testing.T) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("Secret s-%d", i))
	}
	api := mirrortest.Start(t, mirrortest.Cluster("team", "bad"))
	api.Put(t, mirrortest.Broken("team", "bad", strings.Join(names, " ")))
	for name, tc := range map[string]struct {
		command func(term.Env) *cobra.Command
		args    []string
		want    string
	}{
		"get":      {GetClustersCommand, nil, "Causes may be incomplete. Only 32 names in the messages of an object were looked up.\n"},
		"describe": {DescribeClusterCommand, []string{"bad"}, "The root cause may be incomplete. Only 32 names in the messages of an object were looked up.\n"},
	} {
		if _, stderr, err := newListUser(t, api).run(tc.command, tc.args...); err != nil || !strings.Contains(stderr, tc.want) {
			t.Errorf("%s: %v, %q, want %q", name, err, stderr, tc.want)
		}
	}
}

// After a change, only the rows of the changed clusters are computed.
func TestRowsOfChangedClusters(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a")+"\n---\n"+mirrortest.Cluster("team", "b"))
	var changes mirror.Changes
	m, err := mirror.New(api.Config(), mirror.Options{OnChange: changes.Add})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	clusters, machines := clusterRows(m.Store), machineRows(m.Store)
	healthOf := func(changed []fleet.Key) string {
		out := map[string]fleet.Health{}
		for _, row := range clusters(changed, mirrortest.Now()) {
			out[row.Name] = row.Health
		}
		for _, row := range machines(changed, mirrortest.Now()) {
			out[row.Name] = row.Health
		}
		return fmt.Sprintf("%s %s %s %s", out["a"], out["a-md-a-1"], out["b"], out["b-md-a-1"])
	}
	if got := healthOf(m.Store.ChangedClusters(changes.Take())); got != "Healthy Healthy Healthy Healthy" {
		t.Errorf("at first: %s", got)
	}
	for _, name := range []string{"a", "b"} {
		for i, u := range mirrortest.Objects(mirrortest.Broken("team", name, "it belongs to another object")) {
			u.SetResourceVersion(fmt.Sprintf("changed-%d", i))
			m.Store.Put(u)
		}
	}
	if got := healthOf([]fleet.Key{{Namespace: "team", Name: "a"}}); got != "Problem Problem Healthy Healthy" {
		t.Errorf("after a change of cluster a: %s", got)
	}
	if got := healthOf(m.Store.ChangedClusters(changes.Take())); got != "Problem Problem Problem Problem" {
		t.Errorf("after a change of both: %s", got)
	}
	m.Store.Drop(rootcause.Ref{Group: machineKind().Group, Kind: machineKind().Kind, Namespace: "team", Name: "a-md-a-1"})
	if got := machines(m.Store.ChangedClusters(changes.Take()), mirrortest.Now()); len(got) != 3 {
		t.Errorf("%d Machines after a deletion", len(got))
	}
}

// A cluster without Cluster API, and one that does not respond, are reported with a remedy.
func TestListsOfOtherClusters(t *testing.T) {
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			_, _ = w.Write([]byte(`{"kind": "APIVersions", "versions": ["v1"]}`))
		case "/apis":
			_, _ = w.Write([]byte(`{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`))
		case "/api/v1":
			_, _ = w.Write([]byte(`{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []}`))
		default:
			_, _ = w.Write([]byte(`{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": []}`))
		}
	}))
	defer empty.Close()
	for server, want := range map[string]string{empty.URL: "is not a management cluster: it does not have the kind Cluster", "http://127.0.0.1:1": "does not respond"} {
		api := &mirrortest.API{URL: server}
		if _, _, err := newListUser(t, api).run(GetClustersCommand); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", server, err, want)
		}
	}
}

// lineWriter passes complete outputs to a channel.
type lineWriter struct {
	mu  sync.Mutex
	out chan string
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out <- string(p)
	return len(p), nil
}

// runningWatch is a command with --watch.
type runningWatch struct {
	t     *testing.T
	out   chan string
	ended chan error
	// stop interrupts the command.
	stop func()
}

// watch runs a command with --watch. Both outputs are collected.
func (u listUser) watch(t *testing.T, command func(term.Env) *cobra.Command, args ...string) runningWatch {
	t.Helper()
	w := &lineWriter{out: make(chan string, 1000)}
	cmd := command(term.Env{In: strings.NewReader(""), Out: w, Err: w, Getenv: os.Getenv, Now: mirrortest.Now})
	cmd.SetArgs(append(args, "--watch", "--kubeconfig", u.kubeconfig))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	ctx, cancel := context.WithCancel(t.Context())
	r := runningWatch{t, w.out, make(chan error, 1), cancel}
	go func() { r.ended <- cmd.ExecuteContext(ctx) }()
	return r
}

// await waits until a text is printed.
func (r runningWatch) await(text string) {
	r.t.Helper()
	limit := time.After(time.Minute)
	for seen := ""; !strings.Contains(seen, text); {
		select {
		case more := <-r.out:
			seen += more
		case err := <-r.ended:
			r.t.Fatalf("the command ended: %v", err)
		case <-limit:
			r.t.Fatalf("%q is not printed, but %q", text, seen)
		}
	}
}

// end interrupts the command.
func (r runningWatch) end() {
	r.t.Helper()
	r.stop()
	if err := <-r.ended; !errors.Is(err, context.Canceled) {
		r.t.Errorf("the error is %v", err)
	}
}

func TestListWatch(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	w := newListUser(t, api).watch(t, GetClustersCommand)
	w.await("Healthy")
	api.Put(t, mirrortest.Broken("team", "a", "it belongs to another object"))
	w.await("it belongs to another object")
	api.Put(t, mirrortest.Cluster("team", "a"))
	w.await("Healthy  -  -\n")
	w.end()
}

// During an outage, the rows are not silently outdated.
func TestListWatchOutage(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	for kind, command := range map[string]func(term.Env) *cobra.Command{"clusters": GetClustersCommand, "nodes": GetNodesCommand} {
		var down atomic.Bool
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				panic(http.ErrAbortHandler)
			}
			api.ServeHTTP(w, r)
		}))
		w := newListUser(t, &mirrortest.API{URL: server.URL}).watch(t, command)
		w.await("Healthy")
		down.Store(true)
		server.CloseClientConnections()
		w.await("The " + kind + " are not updated: the API server does not respond.\n")
		down.Store(false)
		w.await("The " + kind + " are updated again.\n")
		w.end()
		server.CloseClientConnections()
		server.Close()
	}
}

// listOfNames returns a list whose rows have a name, a status and a reason.
func listOfNames(out io.Writer) listRun[fleet.Cluster] {
	return listRun[fleet.Cluster]{
		lists: lists[fleet.Cluster]{
			kind: "clusters", header: []string{"NAME", "STATUS"},
			attributes: func(c fleet.Cluster) attributes { return attributes{namespace: c.Namespace, name: c.Name} },
			cells: func(c fleet.Cluster, _ cellTimes) listCells {
				return listCells{cells: []string{c.Name, string(c.Health)}, reason: c.Reason}
			},
		},
		listFlags: &listFlags{format: term.AddOutputFlag(pflag.NewFlagSet("x", pflag.ContinueOnError), "wide")},
		env:       term.Env{Out: out, Err: out, Getenv: func(string) string { return "" }, Now: mirrortest.Now},
		namespace: "team",
	}
}

// A terminal shows each row once, and after a repair without the previous reason. It never scrolls, because that would retain
// the previous rows.
func TestWatchReplacesRows(t *testing.T) {
	r := listOfNames(io.Discard)
	broken := fleet.Cluster{Namespace: "team", Name: "a", Health: fleet.Problem, Cause: fleet.Cause{Reason: "it ended"}}
	repaired := fleet.Cluster{Namespace: "team", Name: "a", Health: "Healthy"}
	long := broken
	long.Reason = strings.Repeat("x", 100)
	for name, tc := range map[string]struct {
		rows     []fleet.Cluster
		status   listStatus
		terminal term.Screen
		want     []string
	}{
		"broken":       {[]fleet.Cluster{broken}, listStatus{}, term.Screen{Width: 80, Height: 24}, []string{"NAME STATUS SINCE REASON", "a Problem - it ended"}},
		"repaired":     {[]fleet.Cluster{repaired}, listStatus{}, term.Screen{Width: 80, Height: 24}, []string{"NAME STATUS SINCE REASON", "a Healthy - -"}},
		"unknown size": {slices.Repeat([]fleet.Cluster{repaired}, 2), listStatus{}, term.Screen{}, []string{"NAME STATUS SINCE REASON", "a Healthy - -", "a Healthy - -"}},
		"too many": {slices.Repeat([]fleet.Cluster{repaired}, 9), listStatus{}, term.Screen{Width: 80, Height: 7}, []string{"NAME STATUS SINCE REASON", "a Healthy - -", "a Healthy - -",
			"", "2 of 9 clusters fit on the terminal. List fewer with --problems, -l or -n, or the worst first with --sort-by trouble."}},
		"wrapped": {[]fleet.Cluster{long, repaired}, listStatus{}, term.Screen{Width: 70, Height: 7}, []string{"NAME STATUS SINCE REASON", "a Problem - " + long.Reason,
			"", "1 of 2 clusters fit on the terminal. List fewer with --problems, -l or -n, or the worst first with --sort-by trouble."}},
		"outdated": {[]fleet.Cluster{repaired, repaired}, listStatus{outdated: "no response"}, term.Screen{Width: 80, Height: 8}, []string{"NAME STATUS SINCE REASON", "a Healthy - -",
			"", "1 of 2 clusters fit on the terminal. List fewer with --problems, -l or -n, or the worst first with --sort-by trouble.", "", "The clusters are not updated: no response."}},
	} {
		text, err := r.drawing(tc.rows, tc.status, tc.terminal)
		if err != nil {
			t.Fatal(err)
		}
		text, isCleared := strings.CutPrefix(text, clearScreen)
		var got []string
		lines := 1 // of the cursor
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			got = append(got, strings.Join(strings.Fields(line), " "))
			if tc.terminal.Width > 0 {
				lines += max(1, (len(line)+tc.terminal.Width-1)/tc.terminal.Width)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || !isCleared || lines > max(1, tc.terminal.Height) {
			t.Errorf("%s: cleared %t, %d lines:\n%s", name, isCleared, lines, diff)
		}
	}
}

// Outside of a terminal, --watch names the rows that are gone.
func TestWatchShowsRowsThatAreGone(t *testing.T) {
	var out bytes.Buffer
	r := listOfNames(&out)
	shown := map[string]string{}
	a, b := fleet.Cluster{Namespace: "team", Name: "a"}, fleet.Cluster{Namespace: "team", Name: "b"}
	changed := a
	changed.Health = fleet.Problem
	for i, rows := range [][]fleet.Cluster{{a, b}, {changed}, {changed}} {
		if err := r.show(rows, shown, i == 0); err != nil {
			t.Fatal(err)
		}
	}
	if want := "NAME STATUS SINCE REASON\na - - -\nb - - -\nteam/b is not listed any more.\na Problem - -\n"; strings.Join(strings.Fields(out.String()), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("got:\n%s", out.String())
	}
}
