package cluster

import (
	"context"
	"fmt"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// snapshot is the input of all decisions about a Cluster. observe fills it.
type snapshot struct {
	Now      time.Time
	Settings Settings
	Cluster  *clusterv1.Cluster
	// Infra and ControlPlane are the referenced objects.
	Infra        contract.InfraClusterView
	ControlPlane contract.ControlPlaneView
	// The objects with the Cluster's label, sorted by name.
	Deployments []clusterv1.MachineDeployment
	Pools       []clusterv1.MachinePool
	Sets        []clusterv1.MachineSet
	Machines    []clusterv1.Machine
	// Hidden lists objects of a Cluster that is being deleted, such as "Machine m", that the manager's cache
	// excludes because they lack the Cluster's watch label.
	Hidden []string
	// Binding is the ClusterResourceSetBinding of a Cluster that is being deleted, or nil.
	Binding *addonsv1.ClusterResourceSetBinding
	// Gates are the availability gates of the Cluster or, if it has none, of its ClusterClass.
	Gates []clusterv1.ClusterAvailabilityGate
	// Connection is the health of the connection to the workload cluster.
	Connection workload.Health
	// Access is the input for the kubeconfig. It is read only if the Cluster has no control plane object.
	Access access
}

// access is the state of the Secrets <cluster>-kubeconfig and <cluster>-ca.
type access struct {
	Kubeconfig bool
	// CA is nil if the Secret does not exist.
	CA *corev1.Secret
}

// observe reads the snapshot of a Cluster. Package reconciler calls it at the beginning of each reconciliation.
func (c *controller) observe(ctx context.Context, cluster *clusterv1.Cluster) (snapshot, error) {
	s := snapshot{
		Now: c.now(), Settings: c.settings, Cluster: cluster, Gates: cluster.Spec.AvailabilityGates,
		Connection: c.connections.Health(client.ObjectKeyFromObject(cluster)),
	}
	steps := []func(context.Context, *snapshot) error{
		c.readInfra, c.readControlPlane, c.readDescendants, c.readHidden, c.readBinding, c.readGates, c.readAccess,
	}
	for _, step := range steps {
		if err := step(ctx, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (c *controller) readInfra(ctx context.Context, s *snapshot) error {
	o, err := c.refs.GetReferenced(ctx, s.Cluster, s.Cluster.Spec.InfrastructureRef)
	s.Infra = contract.InfraCluster(o)
	if !s.Cluster.Spec.ControlPlaneEndpoint.IsValid() {
		s.Infra = s.Infra.NeedingEndpoint()
	}
	return err
}

func (c *controller) readControlPlane(ctx context.Context, s *snapshot) error {
	o, err := c.refs.GetReferenced(ctx, s.Cluster, s.Cluster.Spec.ControlPlaneRef)
	s.ControlPlane = contract.ControlPlane(o)
	if !s.Cluster.Spec.ControlPlaneEndpoint.IsValid() {
		s.ControlPlane = s.ControlPlane.NeedingEndpoint()
	}
	return err
}

func (c *controller) readDescendants(ctx context.Context, s *snapshot) error {
	deployments, pools := &clusterv1.MachineDeploymentList{}, &clusterv1.MachinePoolList{}
	sets, machines := &clusterv1.MachineSetList{}, &clusterv1.MachineList{}
	of := watches.InCluster(Name, client.ObjectKeyFromObject(s.Cluster)) // objects in a snapshot are never modified
	for _, list := range []client.ObjectList{deployments, pools, sets, machines} {
		if err := c.client.List(ctx, list, of...); err != nil {
			return fmt.Errorf("listing %T of the Cluster: %w", list, err)
		}
	}
	s.Deployments, s.Pools, s.Sets, s.Machines = deployments.Items, pools.Items, sets.Items, machines.Items
	sort.Slice(s.Deployments, func(i, j int) bool { return s.Deployments[i].Name < s.Deployments[j].Name })
	sort.Slice(s.Pools, func(i, j int) bool { return s.Pools[i].Name < s.Pools[j].Name })
	sort.Slice(s.Sets, func(i, j int) bool { return s.Sets[i].Name < s.Sets[j].Name })
	sort.Slice(s.Machines, func(i, j int) bool { return s.Machines[i].Name < s.Machines[j].Name })
	return nil
}

// readHidden lists objects without the manager's watch label, once all other workers of the Cluster are gone. It
// excludes the Machines of a control plane object, which deletes them itself.
func (c *controller) readHidden(ctx context.Context, s *snapshot) error {
	if !deleting(*s) || len(s.Deployments)+len(s.Pools)+len(s.Sets)+len(s.machines(false)) > 0 {
		return nil
	}
	matters := func(o client.Object) bool {
		_, controlPlane := o.GetLabels()[clusterv1.MachineControlPlaneLabel]
		return !controlPlane || !s.Cluster.Spec.ControlPlaneRef.IsDefined()
	}
	for _, kind := range []string{"MachinePool", "MachineDeployment", "MachineSet", "Machine"} {
		hidden, err := c.scope.Hidden(ctx, clusterv1.GroupVersion.WithKind(kind), client.ObjectKeyFromObject(s.Cluster), matters)
		if err != nil {
			return err
		}
		s.Hidden = append(s.Hidden, hidden...)
	}
	return nil
}

// readBinding reads the binding that must be deleted with the Cluster. A later Cluster with the same name would
// otherwise inherit it.
func (c *controller) readBinding(ctx context.Context, s *snapshot) error {
	if !deleting(*s) {
		return nil
	}
	binding := &addonsv1.ClusterResourceSetBinding{}
	err := c.client.Get(ctx, client.ObjectKeyFromObject(s.Cluster), binding)
	if err == nil {
		s.Binding = binding
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ClusterResourceSetBinding %s: %w", s.Cluster.Name, err)
	}
	return nil
}

// readGates reads the gates of the ClusterClass if the Cluster has none.
func (c *controller) readGates(ctx context.Context, s *snapshot) error {
	key, is := gatesClass(s.Cluster)
	if !is || len(s.Gates) > 0 {
		return nil
	}
	class := &clusterv1.ClusterClass{}
	if err := c.client.Get(ctx, key, class); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading ClusterClass %s: %w", key, err)
	}
	s.Gates = class.Spec.AvailabilityGates
	return nil
}

func (c *controller) readAccess(ctx context.Context, s *snapshot) error {
	if !makesKubeconfig(*s) {
		return nil
	}
	kubeconfig, err := c.readSecret(ctx, s, "-kubeconfig")
	if err != nil || kubeconfig != nil {
		s.Access.Kubeconfig = kubeconfig != nil
		return err
	}
	s.Access.CA, err = c.readSecret(ctx, s, "-ca")
	return err
}

func (c *controller) readSecret(ctx context.Context, s *snapshot, suffix string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: s.Cluster.Namespace, Name: s.Cluster.Name + suffix}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s%s: %w", s.Cluster.Name, suffix, err)
	}
	return secret, nil
}

func deleting(s snapshot) bool { return !s.Cluster.DeletionTimestamp.IsZero() }

// standalone reports whether the object has no controller other than the Cluster. The counters, the conditions and the
// deletion of workers check it.
func standalone(o metav1.Object) bool {
	owner := metav1.GetControllerOf(o)
	return owner == nil || owner.Kind == clusterv1.ClusterKind
}

func isControlPlane(m *clusterv1.Machine) bool {
	_, ok := m.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

// machines returns the Machines of the control plane, or all others.
func (s snapshot) machines(controlPlane bool) []*clusterv1.Machine {
	return s.machinesThat(func(m *clusterv1.Machine) bool { return isControlPlane(m) == controlPlane })
}

// machinesThat returns pointers to the selected Machines without copying them, because Machines are large and a
// Cluster may have hundreds.
func (s snapshot) machinesThat(are func(*clusterv1.Machine) bool) []*clusterv1.Machine {
	var out []*clusterv1.Machine
	for i := range s.Machines {
		if m := &s.Machines[i]; are(m) {
			out = append(out, m)
		}
	}
	return out
}
