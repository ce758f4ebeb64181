package clusterclass

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Name is the name of the controller. Its field manager is "slipway-clusterclass", which owns fields of existing
// objects; another name would leave them without an owner.
const Name = "clusterclass"

// controller reconciles ClusterClasses.
type controller struct {
	client client.Client
	refs   *kube.References
	writer *kube.Writer
	// extensions is nil if the Runtime SDK is disabled.
	extensions hook.Client
	now        func() time.Time
}

// Add adds the ClusterClass controller with its watches to a manager. Package manager calls it when the manager starts,
// and `slipway plan` for a manager in memory, if the feature gate ClusterTopology is enabled. The argument extensions
// is nil if the Runtime SDK is disabled.
func Add(s reconciler.Setup, extensions hook.Client) error {
	c := &controller{client: s.Manager.GetClient(), extensions: extensions, now: s.Clock()}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer = r.Writer
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(kube.CRDKind())
	builder := s.Builder(Name, &clusterv1.ClusterClass{}).
		WatchesMetadata(crd, handler.EnqueueRequestsFromMapFunc(c.ofCRD))
	if extensions != nil {
		builder = builder.Watches(&runtimev1.ExtensionConfig{}, handler.EnqueueRequestsFromMapFunc(c.ofExtension))
	}
	built, err := builder.Build(r)
	if err != nil {
		return err
	}
	c.refs, err = s.References(Name, built, watches.Referrers{
		New: func() client.Object { return &clusterv1.ClusterClass{} }, NewList: newList, Refs: references,
	})
	return err
}

func (c *controller) definition() reconciler.Controller[*clusterv1.ClusterClass, snapshot] {
	return reconciler.Controller[*clusterv1.ClusterClass, snapshot]{
		Name: Name, New: func() *clusterv1.ClusterClass { return &clusterv1.ClusterClass{} },
		Observe: c.observe, Decide: decide, Read: c.answer, Act: c.act, Report: report,
	}
}

func newList() client.ObjectList { return &clusterv1.ClusterClassList{} }

// withoutVersion converts a reference to the form with which provider objects are read.
func withoutVersion(ref clusterv1.ClusterClassTemplateReference) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: ref.GroupVersionKind().Group, Kind: ref.Kind, Name: ref.Name}
}

func references(o client.Object) []clusterv1.ContractVersionedObjectReference {
	var out []clusterv1.ContractVersionedObjectReference
	for _, ref := range topology.TemplateRefs(o.(*clusterv1.ClusterClass)) {
		out = append(out, withoutVersion(ref))
	}
	return out
}

// ofCRD enqueues the classes with templates of a CRD's kind, because the CRD's labels determine the newest version.
func (c *controller) ofCRD(ctx context.Context, crd client.Object) []reconcile.Request {
	return c.classes(ctx, func(class *clusterv1.ClusterClass) bool {
		return slices.ContainsFunc(topology.TemplateRefs(class), func(ref clusterv1.ClusterClassTemplateReference) bool {
			return contract.CRDNameOf(withoutVersion(ref)) == crd.GetName()
		})
	})
}

// ofExtension enqueues the classes with variables of an extension.
func (c *controller) ofExtension(ctx context.Context, extension client.Object) []reconcile.Request {
	return c.classes(ctx, func(class *clusterv1.ClusterClass) bool {
		return slices.ContainsFunc(discoveries(class), func(d discover) bool { return strings.HasSuffix(d.Extension, "."+extension.GetName()) })
	})
}

func (c *controller) classes(ctx context.Context, keep func(*clusterv1.ClusterClass) bool) []reconcile.Request {
	list := &clusterv1.ClusterClassList{}
	if c.client.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	list.Items = slices.DeleteFunc(slices.Clone(list.Items), func(class clusterv1.ClusterClass) bool { return !keep(&class) })
	return watches.Requests(list)
}
