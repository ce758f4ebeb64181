package whatif

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
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/remote"
	"github.com/slipwayhq/slipway/internal/whatif/memory"
	"github.com/slipwayhq/slipway/internal/whatif/played"
	"github.com/slipwayhq/slipway/internal/whatif/world"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Snapshot is what there is.
type Snapshot struct {
	Kinds   *memory.Kinds
	Objects []*unstructured.Unstructured
}

// Kinds are those of CRDs, in the versions that fulfil the contract, which controllers read.
func Kinds(crds []*apiextensionsv1.CustomResourceDefinition) *memory.Kinds {
	return memory.NewKinds(crds, func(crd *apiextensionsv1.CustomResourceDefinition) string {
		_, version, err := contract.Resolve(crd.Name, crd.Labels)
		if err != nil {
			return ""
		}
		return version
	})
}

// Change is what someone wants to do: apply objects in their order, then delete others.
type Change struct {
	Apply, Delete []*unstructured.Unstructured
}

// Options say how a change is tried.
type Options struct {
	// Scheme knows the Go types that the controllers use.
	Scheme *runtime.Scheme
	// Controllers adds those that run. They are the product's.
	Controllers func(loop.Setup, remote.Workloads, hook.Client) error
	// Admission judges writes as the webhooks would; nil: all are admitted.
	Admission func(live client.Reader) memory.Admission
	// Registry calls the Runtime Extensions that only compute something: those that patch and check templates, define variables and
	// plan upgrades. Nil: none is called, and what depends on them is not in the plan. Lifecycle hooks are never called.
	Registry *hook.Extensions
	// Now is when the snapshot was taken.
	Now time.Time
	// Limits of each of the two runs; zero fields: one hundred reconciliations for each object and 1000 more, a week, and an
	// hour without a write.
	Limits world.Limits
}

// Run finds out what a change does to what there is, and what there is then. It needs some milliseconds for each object.
func Run(ctx context.Context, o Options, s Snapshot, c Change) (*Plan, Snapshot, error) {
	t, err := newTrial(o, s)
	if err != nil {
		return nil, s, err
	}
	plan, err := t.run(ctx, o, s, c)
	s.Objects = slices.DeleteFunc(t.world.API.All(), func(u *unstructured.Unstructured) bool {
		return u.GroupVersionKind() == kube.CRDKind()
	})
	return plan, s, err
}

// run runs a trial once.
func (t *trial) run(ctx context.Context, o Options, s Snapshot, c Change) (*Plan, error) {
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
		return nil, fmt.Errorf("bringing the copy to rest: %w", err)
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
	plan.Refused, plan.Settled = refused, before.Fixed && after.Fixed
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

// trial is one copy of the world.
type trial struct {
	world     *world.World
	workloads *played.Workloads
	// extensions are asked by the controllers.
	extensions *played.Extensions
	log        *log
}

func newTrial(o Options, s Snapshot) (*trial, error) {
	t := &trial{log: newLog()}
	t.world = world.New(world.Options{
		Options:   memory.Options{Scheme: o.Scheme, Kinds: s.Kinds, Admission: o.Admission},
		Now:       o.Now,
		Transform: kube.KeepOwnFields,
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
	t.workloads = played.NewWorkloads(t.world, o.Scheme)
	t.extensions = played.NewExtensions(t.world, o.Registry)
	played.NewProviders(t.world, t.workloads)
	played.NewCollector(t.world)
	return t, nil
}

func nameOf(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetName()
	}
	return u.GetNamespace() + "/" + u.GetName()
}
