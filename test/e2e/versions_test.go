package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/nodeimage/versions"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// further is the Kubernetes version that the tests add; `make versions` compiles it beforehand.
const further = "v1.35.4"

// A control plane of an added version runs as a process with a child, dies and comes back with it, and is upgraded in place
// with its data. CP-04
func TestPlaneHostedOfAnAddedVersion(t *testing.T) {
	in := newInstallation(t)
	in.run("versions", "add", further)
	binary, err := apiserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	store := versions.LocalStore(filepath.Join(in.dataDir, "kubernetes"))
	store.Included = "v1.36.3"
	s := supervisor.New(t.Context(), supervisor.Config{
		Root: filepath.Join(in.dataDir, "planes"), Command: []string{binary, "control-plane", "run", "--releases", store.Dir, "--config"},
		Versions: store.Versions, Now: time.Now, SeparateUsers: true,
	})
	defer s.Close()
	client := authorities(t, s)
	config := hostedConfig()
	config.Version = further
	ensure := func() {
		t.Helper()
		if _, err := s.Ensure(t.Context(), hostedName, config); err != nil {
			t.Fatal(err)
		}
	}
	ensure()
	ready := func(version string, not int) supervisor.Status {
		t.Helper()
		return untilHosted(t, s, "a ready control plane of "+version, func(st supervisor.Status) bool {
			return st.Ready && st.EtcdReady && st.Version == version && st.PID != not
		})
	}
	first := ready(further, 0)
	api := kubernetes.NewForConfigOrDie(&rest.Config{Host: "https://" + first.Local, TLSClientConfig: rest.TLSClientConfig{
		CertData: client.CertPEM, KeyData: client.KeyPEM, CAFile: filepath.Join(s.Folder(hostedName).PKI(), "ca.crt"),
	}})
	answers := func(version string) {
		t.Helper()
		if v, err := api.Discovery().ServerVersion(); err != nil || v.GitVersion != version {
			t.Errorf("the API server says %+v, %v", v, err)
		}
		if _, err := api.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
			t.Errorf("its data at %s: %v", version, err)
		}
	}
	announced(t, api)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := api.CoreV1().ConfigMaps("default").Create(t.Context(), kept, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	answers(further)
	if first.Memory < 150<<20 {
		t.Errorf("%d MiB are not what both processes take", first.Memory>>20)
	}
	child := childrenOf(t, first.PID)
	if len(child) != 1 {
		t.Fatalf("children: %v", child)
	}

	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := ready(further, first.PID)
	if lives(child[0]) {
		t.Errorf("process %d outlived its parent", child[0])
	}
	answers(further)
	if err := syscall.Kill(childrenOf(t, second.PID)[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	third := ready(further, second.PID)
	answers(further)

	if out, err := in.try("versions", "remove", further); err == nil || !strings.Contains(out, "in use by default/demo") {
		t.Errorf("a version in use: %v, %s", err, out)
	}
	config.Version = "v1.36.3"
	began := time.Now()
	ensure()
	fourth := ready("v1.36.3", third.PID)
	t.Logf("upgraded in %s; resident memory %d MiB before, %d MiB after", time.Since(began).Round(time.Millisecond), third.Memory>>20, fourth.Memory>>20)
	answers("v1.36.3")
	if left := childrenOf(t, fourth.PID); len(left) > 0 {
		t.Errorf("the included version has children: %v", left)
	}
	config.Version = further
	ensure()
	untilHosted(t, s, "no way back", func(st supervisor.Status) bool {
		return !st.Running && strings.Contains(strings.Join(st.LastLog, "\n"), "newer than "+further)
	})
	config.Version = "v1.36.3"
	ensure()
	ready("v1.36.3", 0)
	answers("v1.36.3")
	in.run("versions", "remove", further)
	if err := s.Remove(t.Context(), hostedName); err != nil {
		t.Errorf("remove: %v", err)
	}
}

// childrenOf returns the process IDs of the children of a process.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	var out []int
	tasks, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				out = append(out, child)
			}
		}
	}
	return out
}
