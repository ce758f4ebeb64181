package etcdrecovery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

const (
	// surveyTime is the default timeout for the response of infrastructure machines.
	surveyTime = 2 * time.Minute
	// withdrawTime is the timeout for the removal of a request that was not accepted.
	withdrawTime = 30 * time.Second
)

// Recoverer requests a recovery of a KubeadmControlPlane without etcd quorum and follows it. `slipway recover
// controlplane` calls Prepare and, after a confirmation, Run. The KubeadmControlPlane controller does the work.
type Recoverer struct {
	progress.Operation
	// SurveyTime is the timeout for the response of infrastructure machines. Default: 2 min.
	SurveyTime time.Duration
	// Program is called with the program that a user must run on a node.
	Program func(node, program string)
}

// Prepare finds the control plane of a Cluster, surveys its etcd members, and returns the plan of a recovery. It
// changes only the annotations that request the survey.
func (o Recoverer) Prepare(ctx context.Context, cluster *clusterv1.Cluster, want RecoveryOptions) (RecoveryPlan, error) {
	ref := cluster.Spec.ControlPlaneRef
	if ref.Kind != "KubeadmControlPlane" || ref.APIGroup != controlplanev1.GroupVersion.Group {
		return RecoveryPlan{}, fault.New(fault.Invalid, reasonRecoveryUnsupported,
			"cluster %q has a control plane of kind %s, and only a KubeadmControlPlane has members of etcd that can lose their quorum; `slipway restore controlplane` puts a HostedControlPlane back to a snapshot", cluster.Name, ref.Kind)
	}
	if want.Manual && want.Snapshot.Name != "" {
		return RecoveryPlan{}, fault.New(fault.Invalid, reasonRecoveryUnsupported, "a snapshot is restored by the infrastructure provider alone: leave out --manual or --snapshot")
	}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}
	plane, err := o.plane(ctx, key)
	if err != nil {
		return RecoveryPlan{}, err
	}
	if r, err := recovery.ParseRequest(plane.Annotations); err == nil && r != nil && r.Accepted {
		p := RecoveryPlan{Cluster: cluster.Name, ControlPlane: ref.Name, Survivor: r.Survivor, Manual: r.Manual, Force: r.Force, ID: r.ID, UnderWay: true, Node: o.nodeOf(ctx, cluster.Namespace, r.Survivor)}
		if r.Restores() {
			p.Snapshot = &RecoverySnapshot{Snapshot: Snapshot{Cluster: cluster.Name, Policy: r.Snapshot.Policy, Name: r.Snapshot.Name, Time: r.Snapshot.Time()}, want: r.Snapshot}
		}
		return p, nil
	}
	p := RecoveryPlan{Cluster: cluster.Name, ControlPlane: ref.Name, Manual: want.Manual, Force: want.Force, ID: o.Now().UTC().Format(recovery.IDLayout)}
	if p.Snapshot, err = o.snapshot(ctx, cluster, want); err != nil {
		return RecoveryPlan{}, err
	}
	survey := recovery.RecoveryRequest{ID: p.ID}
	if err := o.request(ctx, plane, &survey); err != nil {
		return RecoveryPlan{}, err
	}
	p.Members, err = o.survey(ctx, key, survey, want)
	if withdrawn := o.withdraw(ctx, key, survey); err == nil {
		err = withdrawn
	}
	if err != nil {
		return RecoveryPlan{}, err
	}
	survivor, err := p.choose(want)
	p.Survivor, p.Node = survivor.Machine, survivor.Node
	return p, err
}

// choose selects the surviving Machine.
func (p RecoveryPlan) choose(want RecoveryOptions) (RecoveryMember, error) {
	if p.Snapshot != nil {
		return chooseForSnapshot(p.ControlPlane, p.Members, want, p.Snapshot.Snapshot)
	}
	return choose(p.ControlPlane, p.Members, want)
}

// snapshot finds the snapshot to restore; nil if none is requested.
func (o Recoverer) snapshot(ctx context.Context, cluster *clusterv1.Cluster, want RecoveryOptions) (*RecoverySnapshot, error) {
	if want.Snapshot.Name == "" {
		return nil, nil
	}
	order := SnapshotClient{Operation: o.Operation}
	found, err := order.Find(ctx, cluster, want.Snapshot)
	if err != nil {
		return nil, err
	}
	out := &RecoverySnapshot{Snapshot: found, age: o.Now().Sub(found.Time), want: recovery.Snapshot{
		Policy: found.Policy, Name: found.Name, IdentitySecret: want.Snapshot.IdentitySecret, OtherCluster: want.Snapshot.OtherCluster,
	}}
	out.Since, err = order.MachinesSince(ctx, cluster, found.Time)
	return out, err
}

func (o Recoverer) plane(ctx context.Context, key client.ObjectKey) (*controlplanev1.KubeadmControlPlane, error) {
	plane := &controlplanev1.KubeadmControlPlane{}
	if err := o.Client.Get(ctx, key, plane); err != nil {
		return nil, fmt.Errorf("reading KubeadmControlPlane %s: %w", key.Name, err)
	}
	return plane, nil
}

// request sets the annotation of a control plane; nil removes it. The KubeadmControlPlane controller reads it (package
// recovery), and marks a request that it accepts.
func (o Recoverer) request(ctx context.Context, plane client.Object, r *recovery.RecoveryRequest) error {
	var value *string
	if r != nil {
		value = new(r.String())
	}
	if err := kube.NewWriter(o.Client, manager).Patch(ctx, plane, func(o client.Object) { kube.Annotate(o, hostedv1.RecoverAnnotation, value) }); err != nil {
		return fmt.Errorf("writing annotation %s of KubeadmControlPlane %s: %w", hostedv1.RecoverAnnotation, plane.GetName(), err)
	}
	return nil
}

// withdraw removes a request that was not accepted.
func (o Recoverer) withdraw(ctx context.Context, key client.ObjectKey, r recovery.RecoveryRequest) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
	defer cancel()
	for {
		plane, err := o.plane(ctx, key)
		if err != nil || plane.Annotations[hostedv1.RecoverAnnotation] != r.String() {
			return client.IgnoreNotFound(err)
		}
		if err = o.request(ctx, plane, nil); fault.KindOf(err) != fault.Conflict && !apierrors.IsConflict(err) {
			return err
		}
	}
}

// Run requests the recovery, unless it is in progress, and waits until the control plane is restored.
func (o Recoverer) Run(ctx context.Context, namespace string, p RecoveryPlan) error {
	key := client.ObjectKey{Namespace: namespace, Name: p.ControlPlane}
	want := recovery.RecoveryRequest{ID: p.ID, Survivor: p.Survivor, Manual: p.Manual, Force: p.Force}
	if p.Snapshot != nil {
		want.Snapshot = p.Snapshot.want
	}
	if !p.UnderWay {
		plane, err := o.plane(ctx, key)
		if err != nil {
			return err
		}
		if err := o.request(ctx, plane, &want); err != nil {
			return err
		}
	}
	f := &recoveryProgress{Recoverer: o, plan: p}
	err := o.Follow(ctx, "the recovery did not complete within --wait-timeout; an accepted recovery continues without this command", func(ctx context.Context) (bool, string, error) {
		plane, err := o.plane(ctx, key)
		if err != nil {
			return false, "", err
		}
		return f.next(plane)
	})
	if err != nil {
		return errors.Join(err, o.withdraw(ctx, key, want)) // an accepted request has another value
	}
	return nil
}

// recoveryProgress tracks the progress of a recovery.
type recoveryProgress struct {
	Recoverer
	plan             RecoveryPlan
	printed, rebuilt bool
}

// next reports whether the control plane is restored, and the progress. It returns an error if the recovery does not
// proceed. The KubeadmControlPlane controller writes the reason Recovering, and the ID of the request into the message.
func (f *recoveryProgress) next(plane *controlplanev1.KubeadmControlPlane) (done bool, wait string, err error) {
	if f.rebuilt {
		done, wait := isRestored(plane)
		return done, wait, nil
	}
	c := condition.Set(plane.Status.Conditions).Get(hostedv1.RecoveredCondition)
	request, err := recovery.ParseRequest(plane.Annotations)
	switch {
	case c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, f.plan.ID):
		f.rebuilt, wait = true, c.Message
	case err == nil && request == nil:
		return false, "", fault.New(fault.Invalid, reasonRecoveryFailed, "annotation %s was removed before the recovery was done", hostedv1.RecoverAnnotation)
	case c == nil || c.Status == metav1.ConditionTrue: // not observed yet
	case c.Reason != "Recovering":
		return false, "", fault.New(fault.Invalid, reasonRecoveryFailed, "the recovery does not proceed: %s", c.Message)
	default:
		wait = c.Message
	}
	if f.plan.Manual && !f.printed && f.Program != nil && c != nil && strings.HasPrefix(c.Message, recovery.ManualRebuild) {
		f.printed = true
		f.Program(f.plan.Node, recovery.Program(recovery.EtcdOrder{ID: f.plan.ID, Step: recovery.Rebuild}))
	}
	return false, wait, nil
}

// isRestored reports whether all Machines exist again, with healthy etcd members, and the progress.
func isRestored(plane *controlplanev1.KubeadmControlPlane) (done bool, wait string) {
	want := ptr.Deref(plane.Spec.Replicas, 1)
	ready, replicas := ptr.Deref(plane.Status.ReadyReplicas, 0), ptr.Deref(plane.Status.Replicas, 0)
	set := condition.Set(plane.Status.Conditions)
	done = ready == want && replicas == want && set.IsTrue(controlplanev1.KubeadmControlPlaneAvailableCondition) &&
		set.IsTrue(controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition)
	return done, fmt.Sprintf("Machines of the control plane: %d of %d ready", min(ready, want), want)
}
