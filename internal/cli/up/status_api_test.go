package up_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// Simulated clusters are counted where the API answers; where it does not, all else is said.
func TestSimulatedClusters(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t)})
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client(t, scheme)
	for name, backend := range map[string]infrav1.LocalClusterBackend{"a": {Simulated: &infrav1.SimulatedCluster{}}, "b": {Simulated: &infrav1.SimulatedCluster{}}, "c": {}} {
		if err := client.Create(t.Context(), &infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: infrav1.LocalClusterSpec{Backend: backend}}); err != nil {
			t.Fatal(err)
		}
	}
	h := used(t)
	defer func() { _ = h.Close() }()
	if err := h.WriteRun(datadir.Run{PID: os.Getpid(), Ready: true, Server: "https://127.0.0.1:6440"}); err != nil {
		t.Fatal(err)
	}
	if text := run(t, h.Dir); strings.Contains(text, "Simulated clusters") || !strings.Contains(text, "Running") {
		t.Errorf("without an answer of the API:\n%s", text)
	}
	kubeconfig, err := os.ReadFile(server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.Kubeconfig(), kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := run(t, h.Dir); !strings.Contains(text, "Simulated clusters, which need no process: 2;") {
		t.Errorf("with two:\n%s", text)
	}
}

// A manager of another cluster says what it works on, whether it is the one that leads, and that its cluster does not answer.
func TestManagerAndItsCluster(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t, "LocalCluster")})
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client, leader := server.Client(t, scheme), "elsewhere_1"
	objects := []ctrlclient.Object{&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "lead"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &leader}}}
	for _, namespace := range []string{"default", "kube-system"} {
		objects = append(objects, &infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}, Spec: infrav1.LocalClusterSpec{Backend: infrav1.LocalClusterBackend{Simulated: &infrav1.SimulatedCluster{}}}})
	}
	for _, o := range objects {
		if err := client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	holder := datadir.Holder{PID: os.Getpid(), Host: "here", Since: now, Version: "v0.1.0", ManagerOf: server.Config.Host, Kubeconfig: server.Kubeconfig}
	h, err := datadir.Open(datadir.Dir(t.TempDir()), holder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	away := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(away, []byte(strings.ReplaceAll(read(t, server.Kubeconfig), server.Config.Host, "https://127.0.0.1:1")), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change    func(h *datadir.Holder)
		says, not []string
	}{
		"starting": {func(*datadir.Holder) {}, []string{"Manager: +Starting", "need no process: 2"}, []string{"Leader", "Objects", "Does not"}},
		"standby":  {func(h *datadir.Holder) { h.Lease = "default/lead" }, []string{"Manager: +Standby", "Leader: +elsewhere_1, by lease default/lead"}, nil},
		"no lease": {func(h *datadir.Holder) { h.Lease = "default/none" }, []string{"Manager: +Standby", "Leader: +not known"}, nil},
		"leads":    {func(h *datadir.Holder) { h.Lease, h.Working = "default/lead", true }, []string{"Manager: +Running", "Leader: +this one, by lease default/lead"}, nil},
		"limited": {func(h *datadir.Holder) { h.Working, h.Namespace, h.WatchFilter = true, "default", "mine" },
			[]string{"Objects: +in namespace default, with the watch filter mine", "need no process: 0"}, []string{"Leader"}},
		"a namespace": {func(h *datadir.Holder) { h.Working, h.Namespace = true, "default" }, []string{"need no process: 1"}, nil},
		"away":        {func(h *datadir.Holder) { h.Working, h.Kubeconfig, h.ManagerOf = true, away, "https://127.0.0.1:1" }, []string{"Manager: +Running", "Not responding: +.*connection refused"}, []string{"need no process"}},
		"in a Pod":    {func(h *datadir.Holder) { h.Working, h.Kubeconfig = true, "" }, []string{"Manager: +Running"}, []string{"Not responding"}},
	} {
		its := holder
		tc.change(&its)
		if err := h.UpdateHolder(its); err != nil {
			t.Fatal(err)
		}
		text := run(t, h.Dir)
		for _, want := range tc.says {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("%s: it does not say %q:\n%s", name, want, text)
			}
		}
		for _, other := range tc.not {
			if strings.Contains(text, other) {
				t.Errorf("%s: it says %q:\n%s", name, other, text)
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
