package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/plan/memory"
	"github.com/slipwayhq/slipway/internal/plan/world"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Snapshot contains the objects of a management cluster and their kinds: the input of [Run].
type Snapshot struct {
	Kinds   *memory.Kinds
	Objects []*unstructured.Unstructured
	// WithoutHosts means that the hosts of an inventory could not be read.
	WithoutHosts bool
}

// kindsOf returns the kinds of CRDs in the version that fulfils the contract, which controllers read. [ReadCluster] and
// [ReadFolder] call it for a [Snapshot].
func kindsOf(crds []*apiextensionsv1.CustomResourceDefinition) *memory.Kinds {
	return memory.NewKinds(crds, func(crd *apiextensionsv1.CustomResourceDefinition) string {
		_, version, err := contract.Resolve(crd.Name, crd.Labels)
		if err != nil {
			return ""
		}
		return version
	})
}

// Change is a proposed change: objects to apply in order, and objects to delete afterwards.
type Change struct {
	Apply, Delete []*unstructured.Unstructured
}

// Options configures a run. `slipway plan` fills it in from its flags and from package manager.
type Options struct {
	// Scheme contains the Go types that the controllers use.
	Scheme *runtime.Scheme
	// Controllers adds the controllers to run, which are the production ones.
	Controllers func(reconciler.Setup, workload.Workloads, hook.Client) error
	// Admission validates writes like the webhooks; nil: all writes are admitted.
	Admission func(live client.Reader) memory.Admission
	// Inventory simulates the hosts of machines that need one of a finite number; nil: there are none. isKnown is false
	// if the hosts could not be read, so that there are enough for all machines.
	Inventory func(isKnown bool) world.Inventory
	// Registry calls the Runtime Extensions that only compute a result: they patch and validate templates, define
	// variables and plan upgrades. If it is nil, none is called, and the plan does not include anything that depends on
	// them. Lifecycle hooks are never called.
	Registry *hook.Extensions
	// Now is the time of the snapshot.
	Now time.Time
	// Limits apply to each of the two runs. Defaults: 100 reconciliations for each object and 1000 more, one week, and
	// one hour without a write.
	Limits world.Limits
}

// Run computes the effects of a change on a snapshot, and the resulting snapshot, for `slipway plan`. It takes some
// milliseconds for each object.
func Run(ctx context.Context, o Options, s Snapshot, c Change) (*Plan, Snapshot, error) {
	t, err := newSimulation(o, s)
	if err != nil {
		return nil, s, err
	}
	plan, err := t.run(ctx, o, s, c)
	s.Objects = slices.DeleteFunc(t.world.API.All(), func(u *unstructured.Unstructured) bool {
		return u.GroupVersionKind() == kube.CRDKind()
	})
	return plan, s, err
}

// run runs the simulation once.
func (t *simulation) run(ctx context.Context, o Options, s Snapshot, c Change) (*Plan, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := o.Controllers(t.world.Setup(), t.workloads, t.extensions); err != nil {
		return nil, fmt.Errorf("adding the controllers: %w", err)
	}
	if err := t.world.Start(ctx); err != nil {
		return nil, err
	}
	limits := o.limits(len(s.Objects) + len(c.Apply))
	before, err := t.world.Settle(ctx, limits)
	if err != nil {
		return nil, fmt.Errorf("settling the copy: %w", err)
	}
	t.log.begin(t.world.API.All())
	refused := t.change(ctx, c)
	after, err := t.world.Settle(ctx, limits)
	if err != nil {
		return nil, fmt.Errorf("running the controllers: %w", err)
	}
	plan := t.log.plan(t.world.API.All())
	plan.Hooks = hooksOf(t.extensions.Calls(t.log.began), t.log.began)
	plan.Unanswered = unansweredOf(t.extensions.Unanswered())
	plan.Refused, plan.Settled = refused, before.Complete && after.Complete
	plan.Reconciliations = before.Reconciliations + after.Reconciliations
	return plan, nil
}

func (o Options) limits(objects int) world.Limits {
	l := o.Limits
	if l.Reconciliations == 0 {
		l.Reconciliations = 1000 + 100*objects
	}
	if l.Time == 0 {
		l.Time = 7 * 24 * time.Hour
	}
	if l.Quiet == 0 {
		l.Quiet = time.Hour
	}
	return l
}

// simulation is a simulation of one change: the parts of package world with a log.
type simulation struct {
	world     *world.World
	workloads *world.Workloads
	// extensions handles the hook calls of the controllers.
	extensions *world.Extensions
	log        *runLog
}

// newSimulation copies the objects and creates the parts of the simulation around them. [Run] adds the controllers.
func newSimulation(o Options, s Snapshot) (*simulation, error) {
	t := &simulation{log: newLog()}
	t.world = world.New(world.Options{
		Options:   memory.Options{Scheme: o.Scheme, Kinds: s.Kinds, Admission: o.Admission},
		Now:       o.Now,
		Transform: kube.PruneManagedFields,
		Plans:     t.log,
	})
	t.log.now = t.world.Now
	for _, crd := range s.Kinds.CRDs() {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kube.CRDKind())
		u.SetName(crd.Name)
		u.SetLabels(crd.Labels)
		if err := t.world.API.Load(u); err != nil {
			return nil, err
		}
	}
	for _, u := range s.Objects {
		if err := t.world.API.Load(u); err != nil {
			return nil, fmt.Errorf("copying %s %s: %w", u.GetKind(), nameOf(u), err)
		}
	}
	t.world.Observe(t.log.observe)
	t.workloads = world.NewWorkloads(t.world, o.Scheme)
	t.extensions = world.NewExtensions(t.world, o.Registry)
	var inventory world.Inventory
	if o.Inventory != nil {
		if inventory = o.Inventory(!s.WithoutHosts); s.WithoutHosts {
			inventory = unknownHosts{inventory, t.log}
		}
		t.log.inventory, t.log.hostsUnknown = inventory, s.WithoutHosts
	}
	world.NewProviders(t.world, t.workloads, inventory)
	world.NewCollector(t.world)
	return t, nil
}

func nameOf(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetName()
	}
	return u.GetNamespace() + "/" + u.GetName()
}
