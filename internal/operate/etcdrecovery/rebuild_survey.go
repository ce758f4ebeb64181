package etcdrecovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
)

// nodeOf returns the name of a Machine's Node for the plan; empty if it cannot be read. [Recoverer.Prepare] calls it
// for a recovery that is already in progress.
func (o Recoverer) nodeOf(ctx context.Context, namespace, machine string) string {
	m := &clusterv1.Machine{}
	if o.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: machine}, m) != nil {
		return ""
	}
	return m.Status.NodeRef.Name
}

// survey is called by [Recoverer.Prepare] after it has requested the states of the etcd members. It waits until the
// infrastructure of all remaining Machines has responded, and the control plane no longer reports the result of an
// earlier request. After the timeout it returns the responses received so far.
func (o Recoverer) survey(ctx context.Context, key client.ObjectKey, r recovery.RecoveryRequest, want RecoveryOptions) ([]RecoveryMember, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.SurveyTime, surveyTime))
	defer cancel()
	var out []RecoveryMember
	err := wait.PollUntilContextCancel(ctx, cmp.Or(o.Interval, time.Second), true, func(context.Context) (bool, error) {
		ctx := context.WithoutCancel(ctx)
		plane, err := o.plane(ctx, key)
		if err != nil {
			return false, err
		}
		var complete bool
		out, complete, err = o.members(ctx, plane, r)
		stale := condition.Set(plane.Status.Conditions).IsFalse(hostedv1.RecoveredCondition)
		return (complete || want.Manual) && !stale, err
	})
	if err != nil && ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = nil
	}
	return out, err
}

// members returns the Machines of a control plane, sorted by name, with the responses of their infrastructure machines;
// complete reports whether all have responded that can.
func (o Recoverer) members(ctx context.Context, plane *controlplanev1.KubeadmControlPlane, r recovery.RecoveryRequest) (out []RecoveryMember, complete bool, err error) {
	list := &clusterv1.MachineList{}
	if err := o.Client.List(ctx, list, client.InNamespace(plane.Namespace), client.HasLabels{clusterv1.MachineControlPlaneLabel}); err != nil {
		return nil, false, fmt.Errorf("listing Machines of KubeadmControlPlane %s: %w", plane.Name, err)
	}
	complete = true
	for _, m := range list.Items {
		if !metav1.IsControlledBy(&m, plane) {
			continue
		}
		one := memberOf(m)
		report, err := o.report(ctx, m)
		if err != nil {
			return nil, false, err
		}
		switch {
		case one.Lost != "" || one.Node == "":
		case report.IsFor(recovery.EtcdOrder{ID: r.ID, Step: recovery.Survey}):
			one.Found, one.Problem = report.Member, report.Problem
		default:
			complete = false
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b RecoveryMember) int { return strings.Compare(a.Machine, b.Machine) })
	return out, complete, nil
}

// report returns the response of a Machine's infrastructure machine; nil if there is none. The infrastructure provider
// writes it to an annotation of that object.
func (o Recoverer) report(ctx context.Context, m clusterv1.Machine) (*recovery.Report, error) {
	ref := m.Spec.InfrastructureRef
	mapping, err := o.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
	if err != nil {
		return nil, fmt.Errorf("finding the kind of %s %s: %w", ref.Kind, ref.Name, err)
	}
	infra := &metav1.PartialObjectMetadata{}
	infra.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := o.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: ref.Name}, infra); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return recovery.ParseReport(infra.GetAnnotations()), nil
}
