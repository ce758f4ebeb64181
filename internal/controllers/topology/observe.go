package topology

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
	"github.com/slipwayhq/slipway/internal/topology/patch"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// snapshot is the input of all decisions about a topology. Class is nil if it does not exist. observe fills it in each
// reconciliation.
type snapshot struct {
	topology.Snapshot
	Now time.Time
	// NoFinalizer is set until the Cluster controller has added its finalizer. Nothing else is read before.
	NoFinalizer bool
	// RuntimeSDK is true if extensions are called. HookResults are their responses to lifecycle hooks.
	RuntimeSDK  bool
	HookResults map[lifecycle.Hook]lifecycle.HookResult
	// Lifecycle has the operations that the Cluster may perform now. It is computed when everything else was read, and
	// again after each hook.
	Lifecycle lifecycle.Decision
	// Problems explain which objects cannot be read and what a user has to do.
	Problems []string
	// Compiled is the class in the form in which its variables and patches are evaluated.
	Compiled topology.Compiled
	// Answers are the responses of extensions in this reconciliation. Failed contains the errors of the others.
	Answers patch.Responses
	Failed  map[string]error
	// Undecided contains the errors because of which it is unknown whether the spec of a template changes.
	Undecided map[topology.Key]error
	// Unchanged contains the fingerprints of templates whose spec the desired state does not change.
	Unchanged map[string]bool
	// Attempts contains what was last applied, by the UID of the object.
	Attempts map[types.UID]string
	// Unseen are workers that this process created and the cache does not show. LookedUp is set once they were read
	// from the API server, which removes those that do not exist.
	Unseen   []worker
	LookedUp bool
	// Owned are the machine templates that were created for the topology, sorted by kind and name. UsedBySets are
	// the ones that MachineSets use. Used are the templates in use according to a live read, or nil before that
	// read.
	Owned            []contract.Object
	UsedBySets, Used clone.UsedTemplates
}

// observe reads the snapshot of a topology. Package reconciler calls it at the beginning of each reconciliation.
func (c *controller) observe(ctx context.Context, cluster *clusterv1.Cluster) (snapshot, error) {
	s := snapshot{Now: c.now(), RuntimeSDK: c.extensions != nil, Snapshot: topology.Snapshot{Cluster: cluster}}
	if !cluster.Spec.Topology.IsDefined() {
		return s, nil
	}
	if !cluster.DeletionTimestamp.IsZero() {
		err := c.readSteered(ctx, &s)
		return s.withLifecycle(), err
	}
	if s.NoFinalizer = !controllerutil.ContainsFinalizer(cluster, clusterv1.ClusterFinalizer); s.NoFinalizer {
		return s, nil // adding the finalizer enqueues the Cluster again
	}
	for _, step := range []func(context.Context, *snapshot) error{c.readClass, c.readTemplates, c.readCluster, c.readWorkers, c.readHealthChecks, c.readOwned} {
		if err := step(ctx, &s); err != nil || s.Class == nil {
			return s, err
		}
	}
	s.Attempts = c.attempts.Of(s.Live.Objects())
	s.Unseen = c.created.unseen(client.ObjectKeyFromObject(cluster), s.Live.Names)
	return s.withLifecycle(), nil
}

func (c *controller) readClass(ctx context.Context, s *snapshot) error {
	class, key := &clusterv1.ClusterClass{}, topology.ClassKey(s.Cluster)
	err := c.client.Get(ctx, key, class, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading ClusterClass %s: %w", key, err)
	}
	s.Class, s.Compiled = class, c.classes.Of(class)
	return nil
}

func (c *controller) readTemplates(ctx context.Context, s *snapshot) error {
	s.Templates = map[clusterv1.ClusterClassTemplateReference]contract.Object{}
	for _, ref := range topology.TemplateRefs(s.Class) {
		kind := ref.GroupVersionKind()
		o, err := c.read(ctx, s, kind.Version, clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: ref.Name}, s.Class.Namespace)
		if err != nil {
			return err
		}
		s.Templates[ref] = o
	}
	return nil
}

// read reads a provider object. If a user has to change something before it can be read, it is recorded as a
// problem.
func (c *controller) read(
	ctx context.Context, s *snapshot, version string, ref clusterv1.ContractVersionedObjectReference, namespace string,
) (contract.Object, error) {
	o, err := c.refs.GetAs(ctx, version, ref, namespace)
	if f := fault.As(err); f != nil && f.Kind == fault.Invalid {
		if !slices.Contains(s.Problems, f.Message) {
			s.Problems = append(s.Problems, f.Message)
		}
		return contract.Object{}, nil
	}
	return o, err
}

// readMade reads an object that was created from a template of the class in the API version of the template,
// because only objects in the same version can be compared.
func (c *controller) readMade(
	ctx context.Context, s *snapshot, ref clusterv1.ContractVersionedObjectReference, from clusterv1.ClusterClassTemplateReference,
) (contract.Object, error) {
	if !ref.IsDefined() {
		return contract.Object{}, nil
	}
	version, kind := "", from.GroupVersionKind()
	if own := (schema.GroupKind{Group: ref.APIGroup, Kind: strings.TrimSuffix(ref.Kind, "Template")}); own.Group == kind.Group && own.Kind == strings.TrimSuffix(kind.Kind, "Template") {
		version = kind.Version
	}
	return c.read(ctx, s, version, ref, s.Cluster.Namespace)
}

func (c *controller) readCluster(ctx context.Context, s *snapshot) (err error) {
	spec, class := s.Cluster.Spec, s.Class.Spec
	if s.Live.InfraCluster, err = c.readMade(ctx, s, spec.InfrastructureRef, class.Infrastructure.TemplateRef); err != nil {
		return err
	}
	if s.Live.ControlPlane, err = c.readMade(ctx, s, spec.ControlPlaneRef, class.ControlPlane.TemplateRef); err != nil {
		return err
	}
	machines := contract.MachineInfrastructure(s.Live.ControlPlane).Or(clusterv1.ContractVersionedObjectReference{})
	s.Live.ControlPlaneMachines, err = c.readMade(ctx, s, machines, class.ControlPlane.MachineInfrastructure.TemplateRef)
	return err
}

func (c *controller) readHealthChecks(ctx context.Context, s *snapshot) error {
	list := &clusterv1.MachineHealthCheckList{}
	if err := c.client.List(ctx, list, watches.InCluster(Name, client.ObjectKeyFromObject(s.Cluster))...); err != nil {
		return fmt.Errorf("listing MachineHealthChecks: %w", err)
	}
	s.Live.HealthChecks = map[string]*clusterv1.MachineHealthCheck{}
	for i := range list.Items {
		if check := &list.Items[i]; topology.IsOwned(check) {
			s.Live.HealthChecks[check.Name] = check
		}
	}
	return nil
}
