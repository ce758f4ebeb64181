package topology

import (
	"cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// deployment adds a MachineDeployment with its templates and its health check to the desired state of a topology, for
// [Draft.DesiredState]. Fields of spec.topology take precedence over the class.
func (b *builder) deployment(w worker) error {
	bootstrap, infrastructure := b.template(w.bootstrap), b.template(w.infrastructure)
	want, err := encode("MachineDeployment", b.machineDeployment(w, bootstrap, infrastructure))
	if err != nil {
		return err
	}
	b.add(keyed{w.Key, want}, w.live.Object)
	return b.deploymentHealth(w, want.GetName())
}

func (b *builder) machineDeployment(w worker, bootstrap, infrastructure clusterv1.ContractVersionedObjectReference) *clusterv1.MachineDeployment {
	t, c := b.Cluster.Spec.Topology.Workers.MachineDeployments[w.Index], b.Class.Spec.Workers.MachineDeployments[w.class.Index]
	metadata := b.metadata(w.Key, c.Metadata, t.Metadata)
	md := &clusterv1.MachineDeployment{}
	md.Namespace, md.Name, md.Labels, md.Annotations = b.Cluster.Namespace, b.Names[w.Key], metadata.Labels, metadata.Annotations
	md.Spec = clusterv1.MachineDeploymentSpec{
		ClusterName: b.Cluster.Name, Replicas: t.Replicas, Rollout: rollout(t, c),
		Deletion:    clusterv1.MachineDeploymentDeletionSpec{Order: cmp.Or(t.Deletion.Order, c.Deletion.Order)},
		Remediation: clusterv1.MachineDeploymentRemediationSpec{MaxInFlight: c.HealthCheck.Remediation.MaxInFlight},
		Template: clusterv1.MachineTemplateSpec{
			ObjectMeta: metadata,
			Spec: clusterv1.MachineSpec{
				ClusterName: b.Cluster.Name, Version: b.version(w.Key),
				Bootstrap: clusterv1.Bootstrap{ConfigRef: bootstrap}, InfrastructureRef: infrastructure,
				FailureDomain:   cmp.Or(t.FailureDomain, c.FailureDomain),
				MinReadySeconds: firstNonNil(t.MinReadySeconds, c.MinReadySeconds),
				ReadinessGates:  firstList(t.ReadinessGates, c.ReadinessGates),
				Taints:          firstList(t.Taints, c.Taints),
				Deletion:        deletion(timeouts(t.Deletion), timeouts(clusterv1.MachineDeploymentTopologyMachineDeletionSpec(c.Deletion))),
			},
		},
	}
	md.Spec.Selector.MatchLabels = map[string]string{
		clusterv1.ClusterNameLabel: b.Cluster.Name, clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterTopologyMachineDeploymentNameLabel: t.Name,
	}
	if t.HealthCheck.IsDefined() {
		md.Spec.Remediation.MaxInFlight = t.HealthCheck.Remediation.MaxInFlight
	}
	return md
}

// rollout returns the rollout strategy of the topology, if it has one, or else of the class. They are not merged.
func rollout(t clusterv1.MachineDeploymentTopology, c clusterv1.MachineDeploymentClass) clusterv1.MachineDeploymentRolloutSpec {
	out := clusterv1.MachineDeploymentRolloutSpec{After: t.Rollout.After}
	if ts := t.Rollout.Strategy; ts != (clusterv1.MachineDeploymentTopologyRolloutStrategy{}) {
		out.Strategy.Type = ts.Type
		out.Strategy.RollingUpdate = clusterv1.MachineDeploymentRolloutStrategyRollingUpdate(ts.RollingUpdate)
		return out
	}
	out.Strategy.Type = c.Rollout.Strategy.Type
	out.Strategy.RollingUpdate = clusterv1.MachineDeploymentRolloutStrategyRollingUpdate(c.Rollout.Strategy.RollingUpdate)
	return out
}

// timeouts returns the part of a deletion spec that Machines have.
func timeouts(d clusterv1.MachineDeploymentTopologyMachineDeletionSpec) clusterv1.MachineDeletionSpec {
	return clusterv1.MachineDeletionSpec{
		NodeDrainTimeoutSeconds: d.NodeDrainTimeoutSeconds, NodeVolumeDetachTimeoutSeconds: d.NodeVolumeDetachTimeoutSeconds,
		NodeDeletionTimeoutSeconds: d.NodeDeletionTimeoutSeconds,
	}
}

// deletion returns the timeouts of the topology, with those of the class where the topology has none.
func deletion(topology, class clusterv1.MachineDeletionSpec) clusterv1.MachineDeletionSpec {
	return clusterv1.MachineDeletionSpec{
		NodeDrainTimeoutSeconds:        firstNonNil(topology.NodeDrainTimeoutSeconds, class.NodeDrainTimeoutSeconds),
		NodeVolumeDetachTimeoutSeconds: firstNonNil(topology.NodeVolumeDetachTimeoutSeconds, class.NodeVolumeDetachTimeoutSeconds),
		NodeDeletionTimeoutSeconds:     firstNonNil(topology.NodeDeletionTimeoutSeconds, class.NodeDeletionTimeoutSeconds),
	}
}

// version returns the version that a worker may have now.
func (d *Draft) version(worker Key) string {
	versions := d.Versions.Deployments
	if worker.Role == Pool {
		versions = d.Versions.Pools
	}
	return cmp.Or(versions[worker.Worker], d.Cluster.Spec.Topology.Version)
}

// pool adds a MachinePool with its bootstrap config and its infrastructure to the desired state. It has these objects
// themselves and not templates, so they retain their names unless their kind changes. [Draft.DesiredState] calls it for
// each MachinePool.
func (b *builder) pool(w worker) error {
	var refs [2]clusterv1.ContractVersionedObjectReference
	for i, key := range []Key{w.bootstrap, w.infrastructure} {
		source, patched := b.source(key)
		want, live := b.newObject(source, patched, nil, nil), b.live(key)
		if live != nil && isOtherKind(live, want) && !b.isFrozen(key) {
			name, err := b.namer.revision(key, source.Ref)
			if err != nil {
				return err
			}
			want.SetName(name)
			live = nil
		}
		b.add(keyed{key, want}, live)
		refs[i] = Reference(want)
	}
	want, err := encode("MachinePool", b.machinePool(w, refs[0], refs[1]))
	if err != nil {
		return err
	}
	b.add(keyed{w.Key, want}, w.live.Object)
	return nil
}

func (b *builder) machinePool(w worker, bootstrap, infrastructure clusterv1.ContractVersionedObjectReference) *clusterv1.MachinePool {
	t, c := b.Cluster.Spec.Topology.Workers.MachinePools[w.Index], b.Class.Spec.Workers.MachinePools[w.class.Index]
	metadata := b.metadata(w.Key, c.Metadata, t.Metadata)
	mp := &clusterv1.MachinePool{}
	mp.Namespace, mp.Name, mp.Labels, mp.Annotations = b.Cluster.Namespace, b.Names[w.Key], metadata.Labels, metadata.Annotations
	mp.Spec = clusterv1.MachinePoolSpec{
		ClusterName: b.Cluster.Name, Replicas: t.Replicas, FailureDomains: firstList(t.FailureDomains, c.FailureDomains),
		Template: clusterv1.MachineTemplateSpec{
			ObjectMeta: metadata,
			Spec: clusterv1.MachineSpec{
				ClusterName: b.Cluster.Name, Version: b.version(w.Key),
				Bootstrap: clusterv1.Bootstrap{ConfigRef: bootstrap}, InfrastructureRef: infrastructure,
				MinReadySeconds: firstNonNil(t.MinReadySeconds, c.MinReadySeconds),
				Taints:          firstList(t.Taints, c.Taints),
				Deletion:        deletion(clusterv1.MachineDeletionSpec(t.Deletion), clusterv1.MachineDeletionSpec(c.Deletion)),
			},
		},
	}
	return mp
}
