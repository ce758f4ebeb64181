package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// A real control plane goes from one data directory to another, back, and there again, without a restart and while it is written to;
// then the new owner restarts it with all its data: MV-05.
func TestPlaneHandedOver(t *testing.T) {
	binary, err := apiserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("", "slipway-e2e-") // t.TempDir's path is too long for a unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	supervisors := map[string]*supervisor.Supervisor{}
	places := map[string]move.HostDataDir{}
	for _, name := range []string{"a", "b"} {
		dir := datadir.Dir(filepath.Join(root, name))
		places[name] = move.HostDataDir{Dir: dir, Store: hosttransfer.Open(dir, name)}
		supervisors[name] = supervisor.New(t.Context(), supervisor.Config{
			Root: dir.Planes(), Command: []string{binary, "control-plane", "run", "--config"}, Now: time.Now,
			Versions: func() []string { return []string{"v1.36.3"} }, Transfers: places[name].Store,
		})
		defer supervisors[name].Close()
	}
	s := supervisors["a"]
	client := authorities(t, s)
	config := hostedConfig()
	if _, err := s.Ensure(t.Context(), hostedName, config); err != nil {
		t.Fatal(err)
	}
	isReady := func(st supervisor.Status) bool { return st.Supervised && st.Ready && st.EtcdReady }
	first := untilHosted(t, s, "a ready control plane", isReady)
	authority, err := os.ReadFile(filepath.Join(s.Folder(hostedName).PKI(), "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	api := kubernetes.NewForConfigOrDie(&rest.Config{Host: "https://" + first.Local, TLSClientConfig: rest.TLSClientConfig{
		CertData: client.CertPEM, KeyData: client.KeyPEM, CAData: authority,
	}})
	announced(t, api)
	configMaps := api.CoreV1().ConfigMaps("default")
	owner := "a"
	for n, to := range []string{"b", "a", "b"} {
		pair := &move.HostPair{From: places[owner], To: places[to], ReleaseTimeout: short}
		h := move.ClusterResources{Record: hosttransfer.Record{Cluster: "default/demo", UID: fmt.Sprint(n), From: owner, To: to, Planes: []string{hostedName}}}
		if err := pair.Transfer(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		if err := pair.Commit(graph.Scope{Namespace: "default"}); err != nil {
			t.Fatal(err)
		}
		if _, err := supervisors[to].Ensure(t.Context(), hostedName, config); err != nil {
			t.Fatal(err)
		}
		st := untilHosted(t, supervisors[to], "the control plane under the other slipway", isReady)
		if st.PID != first.PID || st.Restarts != 0 {
			t.Fatalf("way %d: got %+v, want process %d", n, st, first.PID)
		}
		if _, err := os.Stat(filepath.Join(places[owner].Dir.Planes(), hostedName)); !os.IsNotExist(err) {
			t.Errorf("way %d: the folder is still there: %v", n, err)
		}
		kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("kept-%d", n)}}
		if _, err := configMaps.Create(t.Context(), kept, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		owner = to
	}
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s = supervisors[owner]
	second := untilHosted(t, s, "a ready control plane again", func(st supervisor.Status) bool { return isReady(st) && st.PID != first.PID })
	for n := range 3 {
		if _, err := configMaps.Get(t.Context(), fmt.Sprintf("kept-%d", n), metav1.GetOptions{}); err != nil {
			t.Errorf("its data: %v", err)
		}
	}
	run, alive, err := processconfig.Folder(filepath.Join(places[owner].Dir.Planes(), hostedName)).ReadRun()
	if err != nil || !alive || run.PID != second.PID || !run.Relocatable {
		t.Errorf("got %+v, %v, %v", run, alive, err)
	}
	if err := s.Remove(t.Context(), hostedName); err != nil {
		t.Error(err)
	}
	if lives(second.PID) {
		t.Errorf("process %d is still there", second.PID)
	}
}
