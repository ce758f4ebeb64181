package machinepool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
)

// hashAnnotation on a LocalMachine is the hash of the template and version from which it was created. A change of the
// hash function would replace all machines of existing pools.
const hashAnnotation = "infrastructure.slipway.dev/template-hash"

// snapshot is the input of [decide] and [report]: the LocalMachinePool, its MachinePool and its machines.
type snapshot struct {
	Object *infrav1.LocalMachinePool
	// Pool is the MachinePool that owns the object. Nil if it is not in the cache (any more).
	Pool    *clusterv1.MachinePool
	Cluster *clusterv1.Cluster
	// Members are the machines of the pool, sorted by name.
	Members []poolMember
	// Live is true if Members were read from the API server instead of the cache, which may not contain the latest
	// changes yet.
	Live bool
	// Policy is the operator's configuration.
	Policy policy.Configuration
	// NodeCapacity is the capacity of a machine in the pool. Empty if the backend is not available in this process.
	NodeCapacity backend.NodeCapacity
	Now          time.Time
}

// poolMember is one machine of the pool. controller.observe fills it in, and [decide] groups the members by the methods
// below.
type poolMember struct {
	Local *infrav1.LocalMachine
	// Machine that owns it. Nil if there is none (yet).
	Machine *clusterv1.Machine
}

// observe reads the snapshot at the start of each reconciliation; package reconciler calls it. It reads from the cache
// and does not access the host.
func (c *controller) observe(ctx context.Context, o *infrav1.LocalMachinePool) (snapshot, error) {
	s := snapshot{Object: o, Now: c.now(), Policy: c.nodes.Policy}
	// The LocalMachines report a backend that is not available; without LocalMachines there is nothing to report.
	s.NodeCapacity, _ = c.nodes.CapacityOf(infrav1.LocalMachineSpec{Backend: o.Spec.Template.Backend})
	var err error
	if s.Pool, err = infrastructure.ReadObject(ctx, c.client, o.Namespace, ownerName(o), &clusterv1.MachinePool{}); err != nil {
		return s, err
	}
	if s.Cluster, err = infrastructure.ReadObject(ctx, c.client, o.Namespace, s.clusterName(), &clusterv1.Cluster{}); err != nil {
		return s, err
	}
	s.Members, err = members(ctx, c.client, s)
	return s, err
}

// members reads the machines of the pool.
func members(ctx context.Context, r client.Reader, s snapshot) ([]poolMember, error) {
	scope := []client.ListOption{client.InNamespace(s.Object.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.clusterName()}}
	var locals infrav1.LocalMachineList
	if err := r.List(ctx, &locals, scope...); err != nil {
		return nil, fmt.Errorf("listing LocalMachines: %w", err)
	}
	var machines clusterv1.MachineList
	if err := r.List(ctx, &machines, scope...); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	of := map[string]*clusterv1.Machine{}
	for i := range machines.Items {
		if ref := machines.Items[i].Spec.InfrastructureRef; ref.Kind == localMachineKind && ref.APIGroup == infrav1.GroupVersion.Group {
			of[ref.Name] = &machines.Items[i]
		}
	}
	var out []poolMember
	for i := range locals.Items {
		if o := &locals.Items[i]; o.Annotations[backend.PoolAnnotation] == s.Object.Name {
			out = append(out, poolMember{Local: o, Machine: of[o.Name]})
		}
	}
	slices.SortFunc(out, func(a, b poolMember) int { return strings.Compare(a.Local.Name, b.Local.Name) })
	return out, nil
}

// readLiveMembers reads the machines of the pool from the API server. Package reconciler calls it when [decide]
// requests readMembers.
func (c *controller) readLiveMembers(ctx context.Context, s snapshot) (snapshot, error) {
	var err error
	s.Members, err = members(ctx, c.live, s)
	s.Live = true
	return s, err
}

const localMachineKind = "LocalMachine"

// kind of the objects that the controller reconciles.
const kind = "LocalMachinePool"

// ownerName returns the name of the MachinePool that owns the object, empty if none does.
func ownerName(o client.Object) string { return infrastructure.OwnerName(o, "MachinePool") }

func (s snapshot) clusterName() string {
	if s.Pool != nil {
		return s.Pool.Spec.ClusterName
	}
	return s.Object.Labels[clusterv1.ClusterNameLabel]
}

// desired returns the desired number of machines; the API's default is 1.
func (s snapshot) desired() int {
	if s.Pool == nil {
		return 1
	}
	return int(ptr.Deref(s.Pool.Spec.Replicas, 1))
}

// hash returns the hash of the fields that determine a machine of the pool. It is stored in the annotation
// [hashAnnotation] of each machine. The MachinePool must exist.
func (s snapshot) hash() string {
	data, _ := json.Marshal(s.Object.Spec.Template.Backend) // a plain struct, which always encodes
	sum := sha256.Sum256(append(data, s.Pool.Spec.Template.Spec.Version...))
	return hex.EncodeToString(sum[:8])
}

// deleting reports whether the deletion of the member has begun.
func (m poolMember) deleting() bool {
	return !m.Local.DeletionTimestamp.IsZero() || m.Machine != nil && !m.Machine.DeletionTimestamp.IsZero()
}

// lost reports whether the member's machine was removed by hand or by another program.
func (m poolMember) lost() bool {
	c := condition.Set(m.Local.Status.Conditions).Get(infrav1.MachineProvisionedCondition)
	return c != nil && c.Reason == backend.ReasonMachineRemoved
}

// unhealthy reports whether a health check marked the member for remediation.
func (m poolMember) unhealthy() bool { return m.Machine != nil && needsRemediation(m.Machine) }

func needsRemediation(m *clusterv1.Machine) bool {
	set := condition.Set(m.Status.Conditions)
	return set.IsFalse(clusterv1.MachineHealthCheckSucceededCondition) && set.IsFalse(clusterv1.MachineOwnerRemediatedCondition)
}

func (m poolMember) ready() bool {
	return condition.Set(m.Local.Status.Conditions).IsTrue(clusterv1.ReadyCondition)
}

// provisioned reports whether the member has, or had, a Node.
func (m poolMember) provisioned() bool {
	return ptr.Deref(m.Local.Status.Initialization.Provisioned, false)
}

// outdated reports whether the member was created from another template or version.
func (m poolMember) outdated(hash string) bool {
	have := m.Local.Annotations[hashAnnotation]
	return have != "" && have != hash
}

// unwanted reports whether the member has the delete-machine annotation.
func (m poolMember) unwanted() bool {
	_, local := m.Local.Annotations[clusterv1.DeleteMachineAnnotation]
	if m.Machine == nil {
		return local
	}
	_, machine := m.Machine.Annotations[clusterv1.DeleteMachineAnnotation]
	return local || machine
}
