package manager_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/inplace"
	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
)

// updater is an extension that writes files to machines in place, in two steps. It is written with the SDK.
type updater struct {
	*hooktest.Extension

	mu sync.Mutex
	// steps are the calls for each Machine, with the path of the first file that it shall have.
	steps map[string][]string
	// kill, where set, ends the manager when UpdateMachine is called for the first time.
	kill func()
}

func startUpdater(t *testing.T) *updater {
	t.Helper()
	u := &updater{Extension: hooktest.Start(t, hooktest.Options{}), steps: map[string][]string{}}
	updates := inplace.Updater{Rules: []inplace.Rule{inplace.Fields(bootstrapv1.GroupVersion.String(), "KubeadmConfig", "files")}}
	x, err := extension.New(
		extension.OnErr("can-update-machine", hooksv1.CanUpdateMachine, updates.CanUpdateMachine),
		extension.OnErr("update", hooksv1.UpdateMachine, inplace.UpdateMachine(u.update)),
	)
	must(t, err)
	serve := x.Handler(slog.New(slog.DiscardHandler))
	for _, path := range append(x.Paths(), hooks.Discovery.Path("")) {
		u.Serve(path, serve.ServeHTTP)
	}
	return u
}

func (u *updater) update(_ context.Context, in hooksv1.UpdateMachineRequestObjects) (inplace.Progress, error) {
	config, err := inplace.Decode[bootstrapv1.KubeadmConfig](in.BootstrapConfig)
	if err != nil {
		return inplace.Done(), err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	path := ""
	for _, f := range config.Spec.Files {
		path += f.Path
	}
	u.steps[in.Machine.Name] = append(u.steps[in.Machine.Name], path)
	if u.kill != nil {
		u.kill()
		u.kill = nil
	}
	if len(u.steps[in.Machine.Name]) < 3 {
		return inplace.Again(time.Second, "writing files"), nil
	}
	return inplace.Done(), nil
}

// of returns the calls for a Machine.
func (u *updater) of(name string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.steps[name])
}

// TestUpdateInPlaceOverAPIServer: the control plane gets files: one Machine is created, two are updated in place by an extension, one is
// deleted, though the manager is killed while the extension works. After that the provider of control planes is a process of its own, which
// learns of extensions from their status.
func TestUpdateInPlaceOverAPIServer(t *testing.T) { // IP-01, IP-04, IP-05, IP-07, IP-08, CP-11
	u := startUpdater(t)
	f := startTower(t, "--feature-gates=RuntimeSDK=true,InPlaceUpdates=true")
	config := u.ExtensionConfig("updater")
	config.UID, config.Generation = "", 0
	eventually(t, "the extension is registered", func() error { return client.IgnoreAlreadyExists(f.client.Create(t.Context(), config)) })
	eventually(t, "the extension is discovered", func() error {
		live := &runtimev1.ExtensionConfig{}
		if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(config), live); err != nil || len(live.Status.Handlers) != 2 {
			return fmt.Errorf("%v, %+v", err, live.Status)
		}
		return nil
	})
	ever, before := machinesEver(t, f.client), controlPlaneMachines(t, f.client)
	workers := ever() - len(before)
	killed := make(chan struct{})
	u.kill = func() { _ = f.manager.cmd.Process.Kill(); close(killed) }

	eventually(t, "files are added", func() error {
		plane := spire(t, f.client)
		plane.Spec.KubeadmConfigSpec.Files = append(plane.Spec.KubeadmConfigSpec.Files, bootstrapv1.File{Path: "/etc/motd", Content: "hello"})
		return f.client.Update(t.Context(), plane)
	})
	select {
	case <-killed:
	case <-time.After(patience):
		t.Fatalf("UpdateMachine was not called: %+v", spire(t, f.client).Status.Conditions)
	}
	_ = f.manager.cmd.Wait()
	var others []string
	for _, set := range providerset.Without(providerset.ControlPlaneKubeadm) {
		others = append(others, string(set.Name))
	}
	f.flags = append(f.flags, "--providers", strings.Join(others, ","))
	f.begin()
	startProcess(t, f.server, "--feature-gates=InPlaceUpdates=true", "--providers", string(providerset.ControlPlaneKubeadm))

	messages := map[string]bool{}
	eventually(t, "the Machines are up to date", func() error {
		list := controlPlaneMachines(t, f.client)
		upToDate := 0
		for _, m := range list {
			set := condition.Set(m.Status.Conditions)
			if c := set.Get(clusterv1.MachineUpdatingCondition); c != nil && c.Status == metav1.ConditionTrue {
				messages[c.Message] = true
				if set.IsTrue(clusterv1.MachineReadyCondition) {
					t.Errorf("Machine %s is ready while it is updated", m.Name)
				}
			}
			if _, marked := m.Annotations[clusterv1.UpdateInProgressAnnotation]; !marked && m.Annotations[runtimev1.PendingHooksAnnotation] == "" && set.IsTrue(clusterv1.MachineUpToDateCondition) {
				upToDate++
			}
		}
		if plane := spire(t, f.client); len(list) != 3 || upToDate != 3 || ptr.Deref(plane.Status.ReadyReplicas, 0) != 3 {
			return fmt.Errorf("%d Machines, %d up to date; %+v", len(list), upToDate, plane.Status.Conditions)
		}
		return nil
	})
	kept := 0
	for _, m := range controlPlaneMachines(t, f.client) {
		is := slices.ContainsFunc(before, func(b clusterv1.Machine) bool { return b.UID == m.UID })
		config := &bootstrapv1.KubeadmConfig{}
		must(t, f.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: m.Spec.Bootstrap.ConfigRef.Name}, config))
		steps := u.of(m.Name)
		if _, marked := config.Annotations[clusterv1.UpdateInProgressAnnotation]; marked || !slices.ContainsFunc(config.Spec.Files, func(f bootstrapv1.File) bool { return f.Path == "/etc/motd" }) {
			t.Errorf("KubeadmConfig of %s: %v, %+v", m.Name, config.Annotations, config.Spec.Files)
		}
		if is {
			kept++
		}
		if is != (len(steps) > 0) || slices.ContainsFunc(steps, func(path string) bool { return !strings.HasSuffix(path, "/etc/motd") }) {
			t.Errorf("Machine %s, there before: %v, was updated in the steps %v", m.Name, is, steps)
		}
	}
	if n := ever() - workers; kept != 2 || n != 4 {
		t.Errorf("%d of 3 Machines are left, there were %d", kept, n)
	}
	if !messages["In-place update in progress: writing files"] {
		t.Errorf("messages %v", messages)
	}
}
