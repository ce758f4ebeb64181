package manager_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/sdk/extension"
	updates "github.com/slipwayhq/slipway/sdk/extension/inplace"
	"github.com/slipwayhq/slipway/test/hooktest"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// workersUpdater is an extension of our SDK that changes the version of Machines and what their kubelet is started with.
type workersUpdater struct {
	*hooktest.Extension
	mu    sync.Mutex
	calls map[string]int
	// begun is called when the first update of a Machine begins.
	begun func()
}

func startWorkersUpdater(t *testing.T) *workersUpdater {
	u := &workersUpdater{Extension: hooktest.Start(t, hooktest.Options{}), calls: map[string]int{}}
	rules := updates.Updater{Rules: []updates.Rule{
		updates.Fields("cluster.x-k8s.io/v1beta2", "Machine", "version"),
		updates.Fields("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig", "joinConfiguration.nodeRegistration.kubeletExtraArgs"),
	}}
	x, err := extension.New(
		extension.OnErr("can-update-set", hooksv1.CanUpdateMachineSet, rules.CanUpdateMachineSet),
		extension.OnErr("update", hooksv1.UpdateMachine, updates.UpdateMachine(u.step)),
	)
	must(t, err)
	for name, hook := range map[string]string{"can-update-set": "CanUpdateMachineSet", "update": "UpdateMachine"} {
		u.Handle(hooktest.Handler(name, hook), x.Handler(nil).ServeHTTP)
	}
	return u
}

// step is done with a Machine when it is called for it the second time.
func (u *workersUpdater) step(_ context.Context, in hooksv1.UpdateMachineRequestObjects) (updates.Progress, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls[in.Machine.Name]++
	if u.begun != nil {
		u.begun()
		u.begun = nil
	}
	if u.calls[in.Machine.Name] == 1 {
		return updates.Again(time.Second, "the kubelet restarts"), nil
	}
	return updates.Done(), nil
}

func (u *workersUpdater) updated() map[string]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.calls)
}

// machineUIDs are those of the Machines, by their names.
func machineUIDs(t *testing.T, c client.Client) map[string]types.UID {
	t.Helper()
	machines := &clusterv1.MachineList{}
	must(t, c.List(t.Context(), machines, client.InNamespace("default")))
	out := map[string]types.UID{}
	for _, m := range machines.Items {
		out[m.Name] = m.UID
	}
	return out
}

// untilRolledOut waits until all Machines of MachineDeployment workers are what it asks for; said collects what its condition says.
func untilRolledOut(t *testing.T, c client.Client, said map[string]bool) {
	t.Helper()
	md := &clusterv1.MachineDeployment{}
	eventually(t, "the rollout is complete", func() error {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "workers"}, md); err != nil {
			return err
		}
		rolling := condition.Set(md.Status.Conditions).Get(clusterv1.MachineDeploymentRollingOutCondition)
		if rolling != nil {
			for line := range strings.SplitSeq(rolling.Message, "\n") {
				said[line] = true
			}
		}
		sets := &clusterv1.MachineSetList{}
		must(t, c.List(t.Context(), sets, client.InNamespace("default")))
		s := md.Status
		if s.ObservedGeneration != md.Generation || rolling == nil || rolling.Status != "False" || len(sets.Items) != 1 ||
			s.UpToDateReplicas == nil || *s.UpToDateReplicas != 3 || s.AvailableReplicas == nil || *s.AvailableReplicas != 3 || *s.Replicas != 3 {
			machines := &clusterv1.MachineList{}
			must(t, c.List(t.Context(), machines, client.InNamespace("default")))
			text := ""
			for _, m := range machines.Items {
				text += fmt.Sprintf("\n%s %s %v %v", m.Name, m.Labels[clusterv1.MachineSetNameLabel], m.Annotations, condition.Set(m.Status.Conditions).Get(clusterv1.MachineUpdatingCondition))
			}
			return fmt.Errorf("%d MachineSets, %v %v%s", len(sets.Items), rolling, s.Versions, text)
		}
		return nil
	})
}

// A MachineDeployment of simulated machines is updated in place by an extension, while the manager is killed: no Machine is created or
// deleted. What the extension covers in part only replaces them.
func TestInPlaceUpdatesOverAPIServer(t *testing.T) { // IP-02, IP-03, IP-04, IP-05, IU-02, IU-03, DP-18
	server := apiserver.Start(t, apiserver.Options{})
	const gates = "--feature-gates=RuntimeSDK=true,InPlaceUpdates=true"
	p := startProcess(t, server, gates)
	c := newClient(t, server)
	ever := machinesEver(t, c)
	u := startWorkersUpdater(t)
	killed := make(chan struct{})
	u.begun = func() { _ = p.cmd.Process.Kill(); close(killed) }
	config := u.ExtensionConfig("updater")
	config.UID, config.Generation = "", 0
	eventually(t, "the extension is registered", func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), config)) })
	objects, err := readObjects("default", filepath.Join("testdata", "inplace-workers.yaml"))
	must(t, err)
	for _, o := range objects {
		eventually(t, "create "+o.GetKind(), func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), o)) })
	}
	said := map[string]bool{}
	untilRolledOut(t, c, said)
	before := machineUIDs(t, c)

	change := func(f func(*clusterv1.MachineSpec)) {
		t.Helper()
		eventually(t, "the template changes", func() error {
			md := &clusterv1.MachineDeployment{}
			must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "workers"}, md))
			f(&md.Spec.Template.Spec)
			return c.Update(t.Context(), md)
		})
	}
	change(func(spec *clusterv1.MachineSpec) {
		spec.Version, spec.Bootstrap.ConfigRef.Name, spec.InfrastructureRef.Name = "v1.36.3", "second", "second"
	})
	eventually(t, "the manager is killed while the first Machine is updated", func() error {
		select {
		case <-killed:
			return nil
		default:
			return fmt.Errorf("%v", u.updated())
		}
	})
	_ = p.cmd.Wait()
	p = startProcess(t, server, gates)
	untilRolledOut(t, c, said)
	if diff := cmp.Diff(before, machineUIDs(t, c)); diff != "" || ever() != 3 {
		t.Errorf("%d Machines ever; those there are (-before +after):\n%s", ever(), diff)
	}
	for name := range before {
		checkUpdated(t, c, name)
	}
	if !said["* Machines of MachineSet "+setSaid(t, said)+" are updated in place by can-update-set.updater"] {
		t.Errorf("the condition said %v", said)
	}

	checkGarbageGoes(t, c)
	if diff := cmp.Diff(before, machineUIDs(t, c)); diff != "" || ever() != 3 {
		t.Errorf("what a user writes moves no Machine (-before +after):\n%s", diff)
	}

	clear(said)
	change(func(spec *clusterv1.MachineSpec) {
		spec.Version, spec.InfrastructureRef.Name = "v1.36.2", "third"
	})
	untilRolledOut(t, c, said)
	for name := range machineUIDs(t, c) {
		if _, old := before[name]; old {
			t.Errorf("Machine %s is still there, and the extension does not change all of it", name)
		}
	}
	found := false
	for line := range said {
		found = found || strings.HasSuffix(line, " are replaced, since can-update-set.updater does not change LocalMachineTemplate spec.template.spec.backend.simulated.startupDelay in place")
	}
	if !found || ever() != 6 {
		t.Errorf("%d Machines ever; the condition said %v", ever(), said)
	}
}

// checkGarbageGoes writes the annotations of moves as a user, and waits until they are gone.
func checkGarbageGoes(t *testing.T, c client.Client) {
	t.Helper()
	keys := []string{
		clusterv1.MachineSetMoveMachinesToMachineSetAnnotation, clusterv1.MachineSetReceiveMachinesFromMachineSetsAnnotation, clusterv1.AcknowledgedMoveAnnotation,
	}
	sets := &clusterv1.MachineSetList{}
	must(t, c.List(t.Context(), sets, client.InNamespace("default")))
	for i := range sets.Items {
		set := &sets.Items[i]
		changed := set.DeepCopy()
		for _, key := range keys {
			changed.Annotations[key] = strings.Repeat("other-set,", 2000)
		}
		must(t, c.Patch(t.Context(), changed, client.MergeFrom(set)))
		eventually(t, "the annotations are removed", func() error {
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
			for _, key := range keys {
				if value, has := set.Annotations[key]; has {
					return fmt.Errorf("%s has %d bytes", key, len(value))
				}
			}
			return nil
		})
	}
}

// setSaid is the MachineSet that the condition was about.
func setSaid(t *testing.T, said map[string]bool) string {
	t.Helper()
	for line := range said {
		if _, rest, found := strings.Cut(line, "* Machines of MachineSet "); found {
			name, _, _ := strings.Cut(rest, " ")
			return name
		}
	}
	t.Errorf("the condition said %v", said)
	return ""
}

// checkUpdated checks that a Machine and its objects are those of the second templates, and that no mark is left.
func checkUpdated(t *testing.T, c client.Client, name string) {
	t.Helper()
	key := client.ObjectKey{Namespace: "default", Name: name}
	m, config, infra := &clusterv1.Machine{}, &bootstrapv1.KubeadmConfig{}, &infrav1.LocalMachine{}
	must(t, c.Get(t.Context(), key, m))
	must(t, c.Get(t.Context(), key, config))
	must(t, c.Get(t.Context(), key, infra))
	if m.Spec.Version != "v1.36.3" || inplace.StateOf(m) != inplace.None {
		t.Errorf("Machine %s has version %s, and annotations %v", name, m.Spec.Version, m.Annotations)
	}
	if args := config.Spec.JoinConfiguration.NodeRegistration.KubeletExtraArgs; len(args) != 1 || *args[0].Value != "4" {
		t.Errorf("KubeadmConfig %s: %v", name, args)
	}
	for _, o := range []client.Object{config, infra} {
		if inplace.IsMarked(o) || o.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation] != "second" {
			t.Errorf("%T %s: %v", o, name, o.GetAnnotations())
		}
	}
}
