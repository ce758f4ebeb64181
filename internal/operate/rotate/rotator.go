package rotate

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/operate/progress"
	"github.com/slipwayhq/slipway/internal/operate/upgrade"
)

// manager is the name of the field manager without its prefix.
const manager = "cli"

// Rotator rotates the CA of a cluster for `slipway rotate authority CLUSTER`, which calls Prepare and, after a
// confirmation, Run.
type Rotator struct {
	progress.Operation
	// NewCA is the CA to install; nil to generate one.
	NewCA *pki.Pair
}

// Prepare returns the plan of the rotation of a Cluster's CA, or the state of a rotation in progress. It changes
// nothing.
func (o Rotator) Prepare(ctx context.Context, cluster *clusterv1.Cluster) (Plan, error) {
	s, err := o.read(ctx, client.ObjectKeyFromObject(cluster))
	if err != nil {
		return Plan{}, err
	}
	state, err := read(s.Secret)
	if err != nil {
		return Plan{}, err
	}
	if o.NewCA == nil && state.Phase == phaseNone && s.Secret.Type != clusterv1.ClusterSecretType {
		return Plan{}, fault.New(fault.Invalid, reasonUnsupported, "Secret %s was not created by Slipway: provide the new authority with --certificate and --key", s.Secret.Name)
	}
	if o.NewCA != nil && state.Phase != phaseNone && !bytes.Equal(o.NewCA.Cert.Raw, state.next().Cert.Raw) {
		return Plan{}, fault.New(fault.Invalid, reasonNotNow, "a rotation of the authority of cluster %q to another authority is in progress: run the command without --certificate and --key to continue it", cluster.Name)
	}
	if o.NewCA != nil && state.Phase == phaseNone {
		if err := state.checkNew(*o.NewCA); err != nil {
			return Plan{}, err
		}
	}
	return planOf(s, state, o.NewCA), nil
}

// Run executes the plan until the rotation is done.
func (o Rotator) Run(ctx context.Context, namespace string, p Plan) error {
	r := &run{Rotator: o, cluster: client.ObjectKey{Namespace: namespace, Name: p.Cluster}, begun: p.UnderWay()}
	return o.Follow(ctx, "the rotation did not complete within --wait-timeout; run the command again to continue it", r.step)
}

// run is one run of a rotation. Once the rotation has started, a Secret without a rotation means that it is done, even
// if the response to the last write was lost. [Rotator.Run] creates it; [progress.Operation.Follow] calls its step.
type run struct {
	Rotator
	cluster client.ObjectKey
	begun   bool
}

// step executes the next step and reports it. [progress.Operation.Follow] calls it until it is done, also after a
// conflict, so it reads the state each time.
func (r *run) step(ctx context.Context) (done bool, text string, err error) {
	s, err := r.read(ctx, r.cluster)
	if err != nil {
		return false, "", err
	}
	state, err := read(s.Secret)
	if err != nil || r.begun && state.Phase == phaseNone {
		return err == nil, "", err
	}
	next, err := decide(s)
	if err != nil {
		return false, "", err
	}
	r.begun = r.begun || state.Phase != phaseNone
	for _, a := range next.Actions {
		if err := r.act(ctx, s, a); err != nil {
			return false, "", err
		}
		if a != (install{phaseNewOnly}) {
			r.Report("%s", a)
		}
	}
	return false, next.Wait, nil
}

func (o Rotator) act(ctx context.Context, s snapshot, do action) error {
	writer := kube.NewWriter(o.Client, manager)
	state, err := read(s.Secret)
	if err != nil {
		return err
	}
	switch a := do.(type) {
	case install:
		next := pki.Pair{}
		if a.After == phaseNone {
			if next, err = o.newPair(state); err != nil {
				return err
			}
		}
		return writer.Patch(ctx, s.Secret, func(o client.Object) { state.install(o.(*corev1.Secret), next) })
	case recordPhase:
		names := slices.DeleteFunc(strings.Split(a.Machines, ","), func(name string) bool { return name == "" })
		return writer.Patch(ctx, s.Secret, func(o client.Object) { state.recordInEffect(o.(*corev1.Secret), names) })
	case restart:
		return o.restart(ctx, s, a.Deployment)
	case replace:
		at := slices.IndexFunc(s.Machines, func(m clusterv1.Machine) bool { return m.Name == a.Machine })
		return client.IgnoreNotFound(writer.Delete(ctx, &s.Machines[at]))
	}
	return fault.New(fault.Bug, "UnknownAction", "no such action: %T", do)
}

// newPair returns the CA to install.
func (o Rotator) newPair(state rotationState) (pki.Pair, error) {
	if o.NewCA == nil {
		return state.generate(o.Now())
	}
	return *o.NewCA, state.checkNew(*o.NewCA)
}

// restart restarts a MachineDeployment. If its topology sets spec.rollout.after, it is set there, because the topology
// would overwrite the field.
func (o Rotator) restart(ctx context.Context, s snapshot, name string) error {
	d := s.Deployments[slices.IndexFunc(s.Deployments, func(d clusterv1.MachineDeployment) bool { return d.Name == name })]
	when := o.Now().Truncate(time.Second)
	for _, set := range s.Sets { // their times are from the clock of the management cluster
		if set.Labels[clusterv1.MachineDeploymentNameLabel] == name && !set.CreationTimestamp.Time.Before(when) {
			when = set.CreationTimestamp.Add(time.Second)
		}
	}
	of := d.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
	at := slices.IndexFunc(s.Cluster.Spec.Topology.Workers.MachineDeployments, func(t clusterv1.MachineDeploymentTopology) bool { return t.Name == of })
	if at < 0 || of == "" || s.Cluster.Spec.Topology.Workers.MachineDeployments[at].Rollout.After.IsZero() {
		return upgrade.Restart(ctx, o.Client, d.Namespace, upgrade.RolloutResource{Kind: upgrade.MachineDeployment, Name: name}, when)
	}
	return kube.NewWriter(o.Client, manager).Patch(ctx, s.Cluster, func(o client.Object) {
		o.(*clusterv1.Cluster).Spec.Topology.Workers.MachineDeployments[at].Rollout.After = metav1.NewTime(when)
	})
}

// read reads the input of a decision. The Machines are read last, so that those created later use the certificates that
// Plane reports.
func (o Rotator) read(ctx context.Context, key client.ObjectKey) (snapshot, error) {
	s := snapshot{Now: o.Now(), Cluster: &clusterv1.Cluster{}, Secret: &corev1.Secret{}, Plane: &hostedv1.HostedControlPlane{}}
	if err := o.Client.Get(ctx, key, s.Cluster); err != nil {
		return s, fmt.Errorf("reading Cluster %s: %w", key.Name, err)
	}
	ref := s.Cluster.Spec.ControlPlaneRef
	if ref.Kind != "HostedControlPlane" || ref.APIGroup != hostedv1.GroupVersion.Group {
		return s, fault.New(fault.Invalid, reasonUnsupported, "%s", unsupported(key.Name, ref.Kind))
	}
	secret := client.ObjectKey{Namespace: key.Namespace, Name: secrets.CA.SecretName(key.Name)}
	if err := o.Client.Get(ctx, secret, s.Secret); err != nil {
		return s, fmt.Errorf("reading Secret %s: %w", secret.Name, err)
	}
	if err := o.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: ref.Name}, s.Plane); err != nil {
		return s, fmt.Errorf("reading HostedControlPlane %s: %w", ref.Name, err)
	}
	deployments, sets, pools, machines := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}, &clusterv1.MachinePoolList{}, &clusterv1.MachineList{}
	for _, list := range []client.ObjectList{deployments, sets, pools, machines} {
		if err := o.Client.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name}); err != nil {
			return s, fmt.Errorf("listing what cluster %s has: %w", key.Name, err)
		}
	}
	s.Deployments, s.Sets, s.Pools, s.Machines = deployments.Items, sets.Items, pools.Items, machines.Items
	return s, nil
}

func unsupported(cluster, kind string) string {
	if kind == "KubeadmControlPlane" {
		return fmt.Sprintf("the authority of cluster %q cannot be replaced while it runs: its control plane is a KubeadmControlPlane, and kubeadm supports one authority at a time, "+
			"so that old and new nodes would not trust each other. Create another cluster, and move what runs on it", cluster)
	}
	return fmt.Sprintf("the authority of cluster %q is managed by the provider of its control plane: its kind is %q, and this command supports HostedControlPlane", cluster, kind)
}
