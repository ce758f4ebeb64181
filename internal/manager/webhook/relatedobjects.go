package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/admission"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/internal/topology/variables"
	"github.com/slipwayhq/slipway/internal/version"
	"github.com/slipwayhq/slipway/sdk/contract"
)

const (
	// classWait limits how long defaulting a new Cluster waits for its ClusterClass, which may have been
	// created just before.
	classWait = 2 * time.Second
	classPoll = 100 * time.Millisecond
)

// relatedReader reads the objects that the rules of package admission depend on besides the written object, and adds
// them to the [admission.Request]. It does not use the cache, because recent writes must be visible. The [reviewer]
// calls read before it evaluates the rules for an object.
type relatedReader struct {
	live client.Reader
	// topologies means that the feature gate for managed topologies is enabled.
	topologies bool
	refs       *kube.References
	schemas    *variables.Schemas
}

// newRelatedReader returns the reader that a [reviewer] uses for all requests.
func newRelatedReader(opts Options) *relatedReader {
	return &relatedReader{live: opts.Live, topologies: opts.Gates.ClusterTopology, refs: kube.NewReferences(opts.Live, nil), schemas: variables.NewSchemas()}
}

// read adds the required objects to a request. If waits is true, it waits for a ClusterClass that is not
// ready. The [reviewer] and [InProcessAdmission] call it before the rules are evaluated.
func (f *relatedReader) read(ctx context.Context, r *admission.Request, waits bool) error {
	if address, ok := r.New.(*ipamv1.IPAddress); ok && r.Old == nil {
		return f.claim(ctx, address, &r.Related)
	}
	if !f.topologies {
		return nil
	}
	switch object := r.New.(type) {
	case *clusterv1.ClusterClass:
		if r.Old == nil {
			return nil
		}
		return f.users(ctx, object, &r.Related)
	case *clusterv1.Cluster:
		if !object.Spec.Topology.IsDefined() {
			return nil
		}
		old, _ := r.Old.(*clusterv1.Cluster)
		return f.topology(ctx, admission.TopologyRequest{New: object, Old: old}, waits, &r.Related)
	}
	return nil
}

// claim reads the IPAddressClaim of a new address. The claim may not exist yet, for example during a restore.
func (f *relatedReader) claim(ctx context.Context, address *ipamv1.IPAddress, out *admission.RelatedObjects) error {
	claim := &ipamv1.IPAddressClaim{}
	err := f.live.Get(ctx, client.ObjectKey{Namespace: address.Namespace, Name: address.Spec.ClaimRef.Name}, claim)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading IPAddressClaim %s: %w", address.Spec.ClaimRef.Name, err)
	}
	out.Claim = claim
	return nil
}

// scaled reads the object whose scale subresource is written. The [reviewer] calls it.
func (f *relatedReader) scaled(ctx context.Context, resource string, r *admission.Request) error {
	scale, isScale := r.New.(*autoscalingv1.Scale)
	switch {
	case !isScale:
	case resource == "kubeadmcontrolplanes":
		plane := &controlplanev1.KubeadmControlPlane{}
		if err := f.live.Get(ctx, client.ObjectKeyFromObject(scale), plane); err != nil {
			return fmt.Errorf("reading KubeadmControlPlane %s: %w", scale.Name, err)
		}
		r.Related.Scaled = plane
	case resource == "machinedeployments" && f.topologies:
		r.Related.ReplicasOwner = f.setBack(ctx, client.ObjectKeyFromObject(scale))
	}
	return nil
}

// setBack returns the topology that sets the replicas of a MachineDeployment and would revert the change.
// Read errors are ignored, because the result only leads to a warning.
func (f *relatedReader) setBack(ctx context.Context, key client.ObjectKey) *admission.ReplicasOwner {
	d, cluster := &clusterv1.MachineDeployment{}, &clusterv1.Cluster{}
	if err := f.live.Get(ctx, key, d); err != nil {
		return nil
	}
	name, inTopology := d.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
	if _, owned := d.Labels[clusterv1.ClusterTopologyOwnedLabel]; !owned || !inTopology {
		return nil
	}
	if err := f.live.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: d.Spec.ClusterName}, cluster); err != nil {
		return nil
	}
	for _, in := range cluster.Spec.Topology.Workers.MachineDeployments {
		if in.Name == name && in.Replicas != nil {
			return &admission.ReplicasOwner{Cluster: cluster.Name, Topology: name, Replicas: *in.Replicas}
		}
	}
	return nil
}

// users lists the Clusters that use a class.
func (f *relatedReader) users(ctx context.Context, class *clusterv1.ClusterClass, out *admission.RelatedObjects) error {
	list := &clusterv1.ClusterList{}
	if err := f.live.List(ctx, list); err != nil {
		return fmt.Errorf("listing the Clusters of the class: %w", err)
	}
	out.Users = slices.DeleteFunc(list.Items, func(c clusterv1.Cluster) bool {
		return !c.Spec.Topology.IsDefined() || topology.ClassKey(&c) != client.ObjectKeyFromObject(class)
	})
	return nil
}

func (f *relatedReader) topology(ctx context.Context, r admission.TopologyRequest, waits bool, out *admission.RelatedObjects) error {
	var err error
	if waits && r.Old == nil && !admission.IsPaused(r.New) {
		out.Class, err = f.awaitClass(ctx, r.New)
	} else {
		out.Class, err = f.class(ctx, r.New)
	}
	if err != nil {
		return err
	}
	if out.Class != nil {
		out.Definitions = f.schemas.Of(out.Class)
	}
	if waits { // only defaults are set
		return nil
	}
	if r.ChangesClass() {
		if out.OldClass, err = f.class(ctx, r.Old); err != nil {
			return err
		}
	}
	if r.Old == nil || r.ChangesVersion() {
		out.RunsOnHost = f.onHost(ctx, out.Class)
	}
	if r.ChangesVersion() {
		out.Upgrading, err = f.upgrading(ctx, r.Old)
	}
	return err
}

// onHost reports whether control planes of a class run on this host. Read errors are ignored, because the
// result only leads to a warning.
func (f *relatedReader) onHost(ctx context.Context, class *clusterv1.ClusterClass) bool {
	if class == nil || class.Spec.ControlPlane.TemplateRef.Kind != "HostedControlPlaneTemplate" {
		return false
	}
	t := &hostedv1.HostedControlPlaneTemplate{}
	err := f.live.Get(ctx, client.ObjectKey{Namespace: class.Namespace, Name: class.Spec.ControlPlane.TemplateRef.Name}, t)
	return err == nil && t.Spec.Template.Spec.Backend.Simulated == nil
}

// class reads the ClusterClass of a Cluster. It is nil if it does not exist.
func (f *relatedReader) class(ctx context.Context, cluster *clusterv1.Cluster) (*clusterv1.ClusterClass, error) {
	class := &clusterv1.ClusterClass{}
	key := topology.ClassKey(cluster)
	if err := f.live.Get(ctx, key, class); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading ClusterClass %s: %w", key, err)
	}
	return class, nil
}

// awaitClass reads the ClusterClass, and polls for a moment if its variables are not reconciled yet. The
// timeout does not cancel requests, because this would cause an error for a Cluster without a class.
func (f *relatedReader) awaitClass(ctx context.Context, cluster *clusterv1.Cluster) (*clusterv1.ClusterClass, error) {
	var class *clusterv1.ClusterClass
	err := wait.PollUntilContextTimeout(ctx, classPoll, classWait, true, func(context.Context) (bool, error) {
		var err error
		class, err = f.class(ctx, cluster)
		return class != nil && admission.IsReconciled(class), err
	})
	if wait.Interrupted(err) {
		return class, nil
	}
	return class, err
}

// upgrading returns the parts of a Cluster that do not run its version yet.
func (f *relatedReader) upgrading(ctx context.Context, cluster *clusterv1.Cluster) ([]string, error) {
	out, err := f.upgradingControlPlane(ctx, cluster)
	if err != nil {
		return nil, err
	}
	owned := []client.ListOption{
		client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}, client.HasLabels{clusterv1.ClusterTopologyOwnedLabel},
	}
	deployments, pools := &clusterv1.MachineDeploymentList{}, &clusterv1.MachinePoolList{}
	if err := f.live.List(ctx, deployments, owned...); err != nil {
		return nil, fmt.Errorf("listing the MachineDeployments: %w", err)
	}
	if err := f.live.List(ctx, pools, owned...); err != nil {
		return nil, fmt.Errorf("listing the MachinePools: %w", err)
	}
	target := cluster.Spec.Topology.Version
	for _, d := range deployments.Items {
		if d.Spec.Template.Spec.Version != target || runsOther(d.Status.Versions, target) {
			out = append(out, "MachineDeployment "+d.Name)
		}
	}
	for _, p := range pools.Items {
		if p.Spec.Template.Spec.Version != target || runsOther(p.Status.Versions, target) {
			out = append(out, "MachinePool "+p.Name)
		}
	}
	return out, nil
}

// runsOther reports whether any replicas run another version.
func runsOther(versions []clusterv1.StatusVersion, target string) bool {
	return slices.ContainsFunc(versions, func(v clusterv1.StatusVersion) bool { return v.Version != "" && !version.Runs(v.Version, target) })
}

// upgradingControlPlane returns the control plane of a cluster if its upgrade is not complete.
func (f *relatedReader) upgradingControlPlane(ctx context.Context, cluster *clusterv1.Cluster) ([]string, error) {
	ref := cluster.Spec.ControlPlaneRef
	if !ref.IsDefined() {
		return nil, nil
	}
	o, err := f.refs.Get(ctx, ref, cluster.Namespace)
	if fault.KindOf(err) == fault.Invalid && err != nil || err == nil && o.Unstructured == nil {
		return nil, nil // there is no object that could be upgrading
	}
	if err != nil {
		return nil, err
	}
	view, target := contract.ControlPlane(o), cluster.Spec.Topology.Version
	if view.SpecVersion.Or(target) != target || runsOther(view.Versions.Or(nil), target) {
		return []string{ref.Kind + " " + ref.Name}, nil
	}
	return nil, nil
}
