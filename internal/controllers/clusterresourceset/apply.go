package clusterresourceset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
)

// clusterTimeout limits the time that one cluster may take in a reconciliation. act applies it to each cluster.
const clusterTimeout = 30 * time.Second

// owner is the field manager in workload clusters, which owns fields of objects there.
const owner = client.FieldOwner(kube.ManagerPrefix + Name)

// applyObjects applies the objects of one ConfigMap or Secret to a workload cluster, in order, for the action apply. It
// returns the errors, and continues after a failure unless the workload cluster is unreachable.
func applyObjects(ctx context.Context, workload client.Client, objects []*unstructured.Unstructured, reconcile bool) []error {
	var failed []error
	for _, o := range objects {
		err := applyObject(ctx, workload, o.DeepCopy(), reconcile)
		if err == nil {
			continue
		}
		failed = append(failed, err)
		if fault.KindOf(err) == fault.Unreachable {
			break
		}
	}
	return failed
}

// applyObject creates the object, or updates an existing one without changing fields that the object does not set.
// An object without a namespace is created in "default", as with kubectl.
func applyObject(ctx context.Context, workload client.Client, o *unstructured.Unstructured, reconcile bool) error {
	name := func() string { return strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/") }
	kind := o.GetKind()
	if o.GetNamespace() == "" {
		namespaced, err := workload.IsObjectNamespaced(o)
		if err != nil {
			return fmt.Errorf("finding kind %s in the workload cluster: %w", kind, err)
		}
		if namespaced {
			o.SetNamespace(metav1.NamespaceDefault)
		}
	}
	if reconcile {
		body, err := o.MarshalJSON()
		if err != nil {
			return fmt.Errorf("encoding %s %s: %w", kind, name(), err)
		}
		err = workload.Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, body), owner)
		if !apierrors.IsNotFound(err) {
			return wrapped(err, "changing", kind, name())
		}
	}
	err := workload.Create(ctx, o, owner)
	if apierrors.IsAlreadyExists(err) {
		if reconcile { // another client created it after the check
			return fault.New(fault.Conflict, "CreatedMeanwhile", "%s %s was created by another client meanwhile; retrying", kind, name()).From(err)
		}
		return nil
	}
	return wrapped(err, "creating", kind, name())
}

func wrapped(err error, doing, kind, name string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %s: %w", doing, kind, name, err)
}

// failure is an error of one cluster. act collects them, and the conditions show them.
type failure struct {
	cluster string
	// resource is the resource that failed. It is empty if the failure concerns the whole cluster.
	resource addonsv1.ResourceRef
	err      error
}

// String returns the message for users.
func (f failure) String() string {
	if f.resource.Name == "" {
		return fmt.Sprintf("Cluster %s: %s", f.cluster, fault.UserMessage(f.err))
	}
	return fmt.Sprintf("Cluster %s: %s %s: %s", f.cluster, f.resource.Kind, f.resource.Name, fault.UserMessage(f.err))
}

// applyError contains all failures of a reconciliation. act returns it, and the condition ResourcesApplied lists the
// failures.
type applyError struct{ failures []failure }

// Error implements error.
func (e applyError) Error() string {
	texts := make([]string, 0, len(e.failures))
	for _, f := range e.failures {
		texts = append(texts, f.String())
	}
	return strings.Join(texts, "; ")
}

// As returns the fault of the most urgent failure, which determines the retry. A conflict, such as a binding that
// another set wrote first, is the most urgent.
func (e applyError) As(target any) bool {
	out, ok := target.(**fault.Fault)
	if !ok {
		return false
	}
	urgency := []fault.Kind{fault.Conflict, fault.Transient, fault.Gone, fault.Unreachable, fault.Invalid, fault.Bug}
	kind := fault.Bug
	for _, f := range e.failures {
		if k := fault.KindOf(f.err); slices.Index(urgency, k) < slices.Index(urgency, kind) {
			kind = k
		}
	}
	*out = fault.New(kind, addonsv1.ClusterResourceSetResourcesNotAppliedReason, "%s", e.Error())
	return true
}
