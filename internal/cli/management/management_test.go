package management_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: slipway
contexts:
- name: slipway
  context: {cluster: a, user: a, namespace: team}
- name: other
  context: {cluster: a, user: a}
clusters:
- name: a
  cluster: {server: "https://127.0.0.1:1"}
users:
- name: a
  user: {token: t}
`

func write(t *testing.T, elements ...string) string {
	t.Helper()
	path := filepath.Join(elements...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func environment(values map[string]string) term.Env {
	return term.Env{Program: values["PROGRAM"], Getenv: func(name string) string { return values[name] }}
}

func TestFind(t *testing.T) {
	home := t.TempDir()
	data := filepath.Join(home, "data")
	running := filepath.Join(home, "running")
	def := write(t, running, "slipway", "kubeconfig")
	given := write(t, home, "given", "kubeconfig")
	h, err := datadir.Open(datadir.Dir(filepath.Join(home, "started")), datadir.Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	started := write(t, home, "started", "kubeconfig")
	cases := map[string]struct {
		reason  string
		vars    map[string]string
		flags   []string
		path    string
		dataDir string
		err     string
	}{
		"flag":             {"--kubeconfig wins over everything", map[string]string{"XDG_DATA_HOME": running, "KUBECONFIG": "/x"}, []string{"--kubeconfig", "/y"}, "/y", "", ""},
		"default data dir": {"a management cluster that was started here wins over KUBECONFIG", map[string]string{"XDG_DATA_HOME": running, "KUBECONFIG": given}, nil, def, filepath.Join(running, "slipway"), ""},
		"clusterctl":       {"scripts that call clusterctl set KUBECONFIG", map[string]string{"PROGRAM": "clusterctl", "XDG_DATA_HOME": running, "KUBECONFIG": given}, nil, "", "", ""},
		"clusterctl here":  {"without KUBECONFIG the cluster that was started here is meant", map[string]string{"PROGRAM": "clusterctl", "XDG_DATA_HOME": running}, nil, def, filepath.Join(running, "slipway"), ""},
		"clusterctl named": {"a data directory that is named wins", map[string]string{"PROGRAM": "clusterctl", "KUBECONFIG": given}, []string{"--data-dir", filepath.Dir(given)}, given, filepath.Dir(given), ""},
		"clusterctl lost":  {"a file that is not there is named", map[string]string{"PROGRAM": "clusterctl", "XDG_DATA_HOME": running, "KUBECONFIG": "/no/such"}, nil, "", "", "KUBECONFIG names /no/such, which does not exist"},
		"data dir":         {"--data-dir names another", map[string]string{"XDG_DATA_HOME": running}, []string{"--data-dir", filepath.Dir(given)}, given, filepath.Dir(given), ""},
		"not started":      {"a data directory that was named is not replaced by something else", map[string]string{"KUBECONFIG": given}, []string{"--data-dir", data}, "", "", "slipway up -d --data-dir " + data},
		"usual":            {"without a data directory kubectl's rules hold", map[string]string{"XDG_DATA_HOME": data, "KUBECONFIG": given}, nil, "", "", ""},
		"exported":         {"slipway up prints the kubeconfig of its data directory for KUBECONFIG", map[string]string{"XDG_DATA_HOME": data, "KUBECONFIG": started}, nil, "", filepath.Dir(started), ""},
		"flag of data dir": {"the kubeconfig of a data directory may also be named", map[string]string{"XDG_DATA_HOME": running}, []string{"--kubeconfig", started}, started, filepath.Dir(started), ""},
		"nothing":          {"a new user has to start one", map[string]string{"XDG_DATA_HOME": data, "HOME": data}, nil, "", "", "\"slipway up -d\" starts it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := pflag.NewFlagSet("x", pflag.ContinueOnError)
			flags := management.AddFlags(set)
			if err := set.Parse(tc.flags); err != nil {
				t.Fatal(err)
			}
			got, err := flags.Find(environment(tc.vars))
			if tc.err != "" {
				kind := fault.Unreachable
				if strings.HasPrefix(tc.err, "KUBECONFIG") {
					kind = fault.Invalid
				}
				if err == nil || !strings.Contains(err.Error(), tc.err) || fault.KindOf(err) != kind {
					t.Errorf("%s: got %v, want a fault with %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil || got.Path != tc.path || got.DataDir != tc.dataDir || (got.UpCommand != "") != (tc.dataDir != "") {
				t.Errorf("%s: got %+v, %v, want %s in %s", tc.reason, got, err, tc.path, tc.dataDir)
			}
		})
	}
}

func TestConnect(t *testing.T) {
	path := write(t, t.TempDir(), "kubeconfig")
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason    string
		flags     management.Flags
		namespace string
		err       string
	}{
		"context's namespace": {"as kubectl does", management.Flags{Kubeconfig: path}, "team", ""},
		"default namespace":   {"a context without a namespace means default", management.Flags{Kubeconfig: path, Context: "other"}, "default", ""},
		"flag":                {"-n wins", management.Flags{Kubeconfig: path, Namespace: "mine"}, "mine", ""},
		"no context":          {"the message lists the contexts", management.Flags{Kubeconfig: path, Context: "none"}, "", "it has: other, slipway"},
		"no file":             {"the path is what is wrong", management.Flags{Kubeconfig: path + "x"}, "", path + "x cannot be used"},
		"empty":               {"there is nothing to parse", management.Flags{Kubeconfig: empty}, "", empty + " selects no cluster, or is empty"},
		"broken":              {"the parser's words help", management.Flags{Kubeconfig: broken}, "", "cannot be used"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := tc.flags.Connect(environment(nil))
			if tc.err != "" {
				if err == nil || !strings.Contains(fault.UserMessage(err), tc.err) || fault.KindOf(err) != fault.Invalid {
					t.Errorf("%s: got %v, want an Invalid fault with %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil || c.Namespace != tc.namespace {
				t.Errorf("%s: got %+v, %v, want namespace %s", tc.reason, c, err, tc.namespace)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	data := t.TempDir()
	write(t, data, "kubeconfig")
	local, err := (&management.Flags{DataDir: data}).Connect(environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	remote, err := (&management.Flags{Kubeconfig: filepath.Join(data, "kubeconfig")}).Connect(environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	refused := fmt.Errorf("listing: %w", &net.OpError{Op: "dial", Err: errors.New("refused")})
	known := fault.New(fault.Gone, "X", "as it is")
	cases := map[string]struct {
		reason string
		c      *management.Connection
		err    error
		kind   fault.Kind
		want   string
	}{
		"stopped":        {"the command that starts it is in the message", local, refused, fault.Unreachable, "slipway up -d --data-dir " + data},
		"away":           {"a cluster of somebody else cannot be started from here", remote, refused, fault.Unreachable, "https://127.0.0.1:1 does not respond"},
		"no cluster api": {"a wrong kubeconfig is the usual reason", remote, &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}}, fault.Invalid, "is not a management cluster"},
		"not all of it":  {"the groups say what is missing", remote, fmt.Errorf("reading: %w", &apiutil.ErrResourceDiscoveryFailed{{Group: "cluster.x-k8s.io", Version: "v1beta2"}: errors.New("no")}), fault.Invalid, "does not serve all of Cluster API (cluster.x-k8s.io/v1beta2): run \"slipway init\""},
		"forbidden":      {"the API's words say what is not allowed", remote, apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, "a", errors.New("no")), fault.Invalid, "rejected the request"},
		"terminating":    {"no kubeconfig may do it", remote, apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, "a", errors.New("create not allowed while custom resource definition is terminating")), fault.Invalid, "wait for the end of the deletion"},
		"no manager":     {"a write that no webhook checks says who is missing", remote, apierrors.NewInternalError(errors.New(`failed calling webhook "a.b": connection refused`)), fault.Unreachable, "a webhook of the management cluster at https://127.0.0.1:1 does not respond"},
		"slow manager":   {"what is slow is not absent", remote, apierrors.NewInternalError(errors.New(`failed calling webhook "a.b": context deadline exceeded`)), fault.Unreachable, "did not respond in time, because its host is busy or the manager hangs"},
		"timeout":        {"the API server responds, and has too much to do", remote, fmt.Errorf("creating: %w", apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)), fault.Transient, "is busy and did not complete the request: wait a moment and run the command again"},
		"server timeout": {"it may be the host of this command", local, apierrors.NewServerTimeout(schema.GroupResource{Resource: "clusters"}, "list", 1), fault.Transient, "wait until this host has less to do"},
		"too many":       {"the API server limits requests", remote, apierrors.NewTooManyRequests("the server has received too many requests", 1), fault.Transient, "https://127.0.0.1:1 is busy"},
		"known":          {"a fault that says what to do is kept", local, known, fault.Gone, "as it is"},
		"interrupted":    {"the user knows", local, context.Canceled, fault.KindOf(context.Canceled), "context canceled"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.c.Explain(tc.err)
			if fault.KindOf(got) != tc.kind || !strings.Contains(fault.UserMessage(got), tc.want) || !errors.Is(got, tc.err) {
				t.Errorf("%s: got %v: %s, want %v with %q", tc.reason, fault.KindOf(got), fault.UserMessage(got), tc.kind, tc.want)
			}
		})
	}
	if remote.Explain(nil) != nil {
		t.Error("no error needs no explanation")
	}
}

// While a management cluster or its manager starts, what is not served yet is waited for, and what is slow is not called absent.
func TestExplainWhileItStarts(t *testing.T) {
	h, err := datadir.Open(datadir.Dir(t.TempDir()), datadir.Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	write(t, string(h.Dir), "kubeconfig")
	c, err := (&management.Flags{DataDir: string(h.Dir)}).Connect(environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	missing := &apiutil.ErrResourceDiscoveryFailed{{Group: "cluster.x-k8s.io", Version: "v1beta2"}: errors.New("no")}
	refused := apierrors.NewInternalError(errors.New(`failed calling webhook "a.b": connection refused`))
	late := fmt.Errorf("listing: %w", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded})
	for _, step := range []struct {
		run  *datadir.Manager
		err  error
		want string
	}{
		{nil, missing, "is starting, and does not serve all of Cluster API before it is ready"},
		{&datadir.Manager{PID: 4711}, missing, "(process 4711) is starting, and does not serve"},
		{&datadir.Manager{PID: 4711}, refused, "is starting, and nothing happens before it is ready"},
		{&datadir.Manager{}, refused, "is being restarted"},
		{&datadir.Manager{PID: 4711, Diagnostics: "https://127.0.0.1:1"}, refused, "(process 4711) runs but did not respond: this host is busy"},
		{&datadir.Manager{PID: 4711, Diagnostics: "https://127.0.0.1:1"}, late, "runs but did not respond at"},
	} {
		if step.run != nil {
			if err := h.WriteRun(datadir.Run{PID: os.Getpid(), Manager: step.run}); err != nil {
				t.Fatal(err)
			}
		}
		if got := c.Explain(step.err); fault.KindOf(got) != fault.Unreachable || !strings.Contains(fault.UserMessage(got), step.want) {
			t.Errorf("got %v: %s, want %q", fault.KindOf(got), fault.UserMessage(got), step.want)
		}
	}
}

// A manager that does not run is told by its webhooks, which do not answer.
func TestNoManager(t *testing.T) {
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		err  error
		says bool
	}{
		"it runs":         {nil, false},
		"it does not run": {apierrors.NewInternalError(errors.New(`failed calling webhook "x": dial tcp 127.0.0.1:9443: connect: connection refused`)), true},
		"not allowed":     {apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, "a", errors.New("no")), false},
		"it is refused":   {apierrors.NewInvalid(schema.GroupKind{Kind: "Cluster"}, "a", nil), false},
	} {
		c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.CreateOption) error {
				if len((&client.CreateOptions{}).ApplyOptions(options).DryRun) == 0 {
					t.Error("it is no dry run")
				}
				return tc.err
			},
		}).WithObjects(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}).Build()
		got := (&management.Connection{Client: c}).ManagerProblem(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"})
		if (got != "") != tc.says || tc.says && !strings.Contains(got, "connection refused") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The data directory of a manager that runs stands for its management cluster.
func TestDirectoryOfAManager(t *testing.T) {
	path := write(t, t.TempDir(), "kubeconfig")
	h, err := datadir.Open(datadir.Dir(filepath.Join(t.TempDir(), "mgr")), datadir.Holder{PID: os.Getpid(), ManagerOf: "https://127.0.0.1:1", Kubeconfig: path, Context: "other"})
	if err != nil {
		t.Fatal(err)
	}
	flags := management.Flags{DataDir: string(h.Dir)}
	if got, err := flags.Find(environment(nil)); err != nil || got.Path != path || got.DataDir != "" {
		t.Errorf("while it runs: %+v, %v", got, err)
	}
	if c, err := flags.Connect(environment(nil)); err != nil || c.Namespace != "default" { // that of its context, and not of the current one
		t.Errorf("its context: %+v, %v", c, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := flags.Find(environment(nil)); err != nil || got.Path != path { // its management cluster may run without it
		t.Errorf("when it has ended: %+v, %v", got, err)
	}
	moved, err := datadir.Open(h.Dir, datadir.Holder{PID: os.Getpid(), ManagerOf: "https://192.0.2.1", Kubeconfig: path, Context: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := flags.Connect(environment(nil)); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "for the API server https://192.0.2.1") {
		t.Errorf("whose kubeconfig leads to another cluster now: %v", err)
	}
	if err := moved.Close(); err != nil {
		t.Fatal(err)
	}
	several, err := datadir.Open(h.Dir, datadir.Holder{PID: os.Getpid(), ManagerOf: "https://192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	defer several.Close() //nolint:errcheck // the test ends
	if _, err := flags.Find(environment(nil)); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "with --kubeconfig") {
		t.Errorf("whose kubeconfig is not known: %v", err)
	}
}

// What is not there may be in the cluster that KUBECONFIG names, which is not asked.
func TestOverlookedKubeconfig(t *testing.T) {
	home := t.TempDir()
	of := write(t, home, "slipway", "kubeconfig")
	for kubeconfig, want := range map[string]bool{"": false, of: false, write(t, home, "other"): true} {
		e := environment(map[string]string{"XDG_DATA_HOME": home, "KUBECONFIG": kubeconfig})
		c, err := management.AddFlags(pflag.NewFlagSet("x", pflag.ContinueOnError)).Connect(e)
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		e.Err = &said
		if c.WarnIgnoredKubeconfig(e); strings.Contains(said.String(), "Using the management cluster of "+filepath.Dir(of)+"; KUBECONFIG selects another one") != want || said.Len() > 0 != want {
			t.Errorf("KUBECONFIG %q, before something is written: %q", kubeconfig, said.String())
		}
		err = c.Explain(fault.New(fault.Gone, "X", "there is no such thing"))
		if said := strings.Contains(err.Error(), "KUBECONFIG selects another one"); said != want || fault.KindOf(err) != fault.Gone {
			t.Errorf("KUBECONFIG %q: %v", kubeconfig, err)
		}
	}
}
