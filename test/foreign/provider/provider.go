package provider

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Provider reconciles its kinds.
type Provider struct {
	client client.Client
	// kubeconfig of the workload clusters, which share one API server.
	kubeconfig []byte

	mu         sync.Mutex
	violations []string
}

// Add adds the provider's controllers to a manager.
func Add(mgr ctrl.Manager, kubeconfig []byte, kinds ...Kind) (*Provider, error) {
	p := &Provider{client: mgr.GetClient(), kubeconfig: kubeconfig}
	for _, k := range kinds {
		if k.Role == Template {
			continue
		}
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(k.GroupVersionKind)
		err := ctrl.NewControllerManagedBy(mgr).Named(k.Kind).For(o).
			Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(p.ofCluster(k)), builder.WithPredicates(clusterMatters())).
			Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(p.ofMachine(k))).
			Watches(&clusterv1.MachinePool{}, handler.EnqueueRequestsFromMapFunc(ofMachinePool(k))).
			Complete(reconcile.Func(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
				return ctrl.Result{}, p.reconcile(ctx, k, r)
			}))
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Violations are what Slipway did against the contract.
func (p *Provider) Violations() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.violations)
}

func (p *Provider) violated(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.violations = append(p.violations, fmt.Sprintf(format, args...))
}

func (k Kind) list() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	return list
}

// New returns an object of the kind.
func (k Kind) New(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.GroupVersionKind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// object is an object of the provider with what it belongs to.
type object struct {
	*unstructured.Unstructured
	kind    Kind
	cluster *clusterv1.Cluster
}

func (p *Provider) reconcile(ctx context.Context, k Kind, r ctrl.Request) error {
	u := k.New(r.Namespace, r.Name)
	if err := p.client.Get(ctx, r.NamespacedName, u); err != nil {
		return client.IgnoreNotFound(err)
	}
	if _, external := u.GetAnnotations()[clusterv1.ManagedByAnnotation]; external && k.Role == InfraCluster {
		return nil
	}
	if _, off := u.GetAnnotations()[HandsOff]; off {
		return nil
	}
	owner, _ := ownerOf(u, owners(k.Role)...)
	if owner == "" && u.GetDeletionTimestamp().IsZero() {
		return nil // an event tells when there is one
	}
	name := u.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" && owner != "" {
		p.violated("%s %s has an owner and no label of its Cluster", k.Kind, r.NamespacedName)
	}
	o := object{u, k, &clusterv1.Cluster{}}
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, o.cluster); err != nil && client.IgnoreNotFound(err) != nil {
		return err
	}
	if paused, err := p.paused(ctx, o); paused || err != nil {
		return err
	}
	if !u.GetDeletionTimestamp().IsZero() {
		return p.leave(ctx, o)
	}
	if controllerutil.ContainsFinalizer(u, Finalizer) {
		return p.provision(ctx, o)
	}
	return patch(ctx, p.client, u, func() { controllerutil.AddFinalizer(u, Finalizer) })
}

func owners(r Role) []string {
	switch r {
	case InfraMachine:
		return []string{"Machine"}
	case InfraMachinePool:
		return []string{"MachinePool"}
	case BootstrapConfig:
		return []string{"Machine", "MachinePool"}
	}
	return []string{"Cluster"}
}

// paused writes the condition Paused and reports whether to do nothing.
func (p *Provider) paused(ctx context.Context, o object) (bool, error) {
	_, annotated := o.GetAnnotations()[clusterv1.PausedAnnotation]
	paused := annotated || o.cluster.Spec.Paused != nil && *o.cluster.Spec.Paused
	status := metav1.ConditionFalse
	if paused {
		status = metav1.ConditionTrue
	}
	if o.kind.Old {
		return paused, nil
	}
	return paused, patch(ctx, p.client, o.Unstructured, func() { SetCondition(o.Unstructured, clusterv1.PausedCondition, status, "") })
}

// leave removes what the object stands for, and the finalizer.
func (p *Provider) leave(ctx context.Context, o object) error {
	if _, held := o.GetAnnotations()[Hold]; held || !controllerutil.ContainsFinalizer(o.Unstructured, Finalizer) {
		return nil
	}
	if o.kind.Role == InfraCluster {
		var machines clusterv1.MachineList
		if err := p.client.List(ctx, &machines, client.InNamespace(o.GetNamespace()), client.MatchingLabels{clusterv1.ClusterNameLabel: o.cluster.Name}); err != nil {
			return err
		}
		if o.cluster.Name != "" && len(machines.Items) > 0 && !o.cluster.DeletionTimestamp.IsZero() {
			p.violated("%s %s is deleted while %d Machines exist", o.kind.Kind, o.GetName(), len(machines.Items))
		}
	}
	if o.kind.Role == ControlPlane {
		if left, err := p.deleteMachines(ctx, o); left || err != nil {
			return err
		}
	}
	return patch(ctx, p.client, o.Unstructured, func() { controllerutil.RemoveFinalizer(o.Unstructured, Finalizer) })
}

// Kubeconfig leads to the workload clusters.
func (p *Provider) Kubeconfig() []byte { return p.kubeconfig }
