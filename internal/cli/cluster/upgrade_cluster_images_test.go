package cluster

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/nodeimage"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/upgrade"
)

const group = "infrastructure.slipway.dev"

// snapshot has a node of the control plane and a worker, with these backends.
func snapshot(plane, worker map[string]any) describe.Snapshot {
	machine := func(name string, labels map[string]string) clusterv1.Machine {
		m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: "LocalMachine", Name: name}
		return m
	}
	object := func(backend map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"backend": backend}}}
	}
	return describe.Snapshot{
		Machines: []clusterv1.Machine{machine("cp", map[string]string{clusterv1.MachineControlPlaneLabel: ""}), machine("w", nil)},
		Objects: map[describe.Ref]*unstructured.Unstructured{
			{Group: group, Kind: "LocalMachine", Name: "cp"}: object(plane), {Group: group, Kind: "LocalMachine", Name: "w"}: object(worker),
		},
	}
}

// An upgrade whose images are missing says how to make them, before it begins.
func TestMissing(t *testing.T) {
	container, own := map[string]any{"container": map[string]any{}}, map[string]any{"container": map[string]any{"image": "x"}}
	simulated := map[string]any{"simulated": map[string]any{}}
	plan := upgrade.Plan{Steps: []upgrade.Step{
		{ControlPlane: true, Version: "v1.36.3", Nodes: 3}, {ControlPlane: true, Version: "v1.37.2", Nodes: 3},
		{Version: "v1.37.2", Workers: []upgrade.Group{{Kind: "MachineDeployment", Name: "a", Nodes: 2}}},
	}}
	held := upgrade.Plan{Steps: []upgrade.Step{{Version: "v1.37.2", Workers: []upgrade.Group{{Nodes: 2, HeldReason: "paused"}, {Nodes: 0}}}}}
	const planes, workers = "slipway image build --kubernetes-version v1.37.2 --control-plane", "slipway image build --kubernetes-version v1.37.2"
	for name, tc := range map[string]struct {
		s    describe.Snapshot
		plan upgrade.Plan
		have []nodeimage.Image
		want []string
	}{
		"newest missing": {snapshot(container, container), plan, []nodeimage.Image{{KubernetesVersion: "v1.36.3", ControlPlane: true}, {KubernetesVersion: "v1.36.3"}}, []string{planes, workers}},
		"all there": {snapshot(container, container), plan, []nodeimage.Image{
			{KubernetesVersion: "v1.36.3", ControlPlane: true}, {KubernetesVersion: "v1.37.2", ControlPlane: true}, {KubernetesVersion: "v1.37.2"}}, nil},
		"of the user":  {snapshot(own, own), plan, nil, nil},
		"no container": {snapshot(simulated, simulated), plan, nil, nil},
		"no nodes":     {snapshot(container, container), held, nil, nil},
	} {
		if diff := cmp.Diff(tc.want, imageBuildCommands(tc.s, tc.plan, tc.have)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The images are those of the Docker Engine that the manager uses, not that of the environment.
func TestImagesOfTheManagersDocker(t *testing.T) {
	docker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.47")
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/images/json") {
			_, _ = w.Write([]byte("[]"))
		}
	}))
	defer docker.Close()
	t.Setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
	dir := datadir.Dir(t.TempDir())
	h, err := datadir.Open(dir, datadir.Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.WriteRun(datadir.Run{PID: os.Getpid(), Nodes: &datadir.NodeLimits{Docker: "tcp://" + docker.Listener.Addr().String()}}); err != nil {
		t.Fatal(err)
	}
	plan := upgrade.Plan{Steps: []upgrade.Step{{ControlPlane: true, Version: "v1.37.2", Nodes: 3}}}
	container := map[string]any{"container": map[string]any{}}
	got := missingImages(t.Context(), &management.Connection{DataDir: string(dir)}, snapshot(container, container), plan)
	if want := "slipway image build --kubernetes-version v1.37.2 --control-plane"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
