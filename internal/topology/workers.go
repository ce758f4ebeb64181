package topology

import (
	"cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// deployment adds a MachineDeployment with its templates and its health check.
func (b *builder) deployment(w worker) error {
	bootstrap, infrastructure := b.template(w.bootstrap), b.template(w.infrastructure)
	want, err := encode("MachineDeployment", b.machineDeployment(w, bootstrap, infrastructure))
	if err != nil {
		return err
	}
	b.add(keyed{w.key, want}, w.live.Object)
	return b.healthCheck(deploymentHealth(w, want.GetName()))
}

func (b *builder) machineDeployment(w worker, bootstrap, infrastructure clusterv1.ContractVersionedObjectReference) *clusterv1.MachineDeployment {
	t, c := w.deployment, w.deploymentClass
	labels := b.labels(w.key, c.Metadata.Labels, t.Metadata.Labels)
	annotations := withoutUpgradeControls(merge(c.Metadata.Annotations, withoutControlAnnotations(t.Metadata.Annotations)))
	md := &clusterv1.MachineDeployment{}
	md.Namespace, md.Name, md.Labels, md.Annotations = b.Cluster.Namespace, b.Names[w.key], labels, annotations
	md.Spec = clusterv1.MachineDeploymentSpec{
		ClusterName: b.Cluster.Name, Replicas: t.Replicas, Rollout: rollout(t, c),
		Deletion:    clusterv1.MachineDeploymentDeletionSpec{Order: cmp.Or(t.Deletion.Order, c.Deletion.Order)},
		Remediation: clusterv1.MachineDeploymentRemediationSpec{MaxInFlight: c.HealthCheck.Remediation.MaxInFlight},
		Template: clusterv1.MachineTemplateSpec{
			ObjectMeta: clusterv1.ObjectMeta{Labels: labels, Annotations: annotations},
			Spec: clusterv1.MachineSpec{
				ClusterName: b.Cluster.Name, Version: b.version(b.Versions.Deployments, t.Name),
				Bootstrap: clusterv1.Bootstrap{ConfigRef: bootstrap}, InfrastructureRef: infrastructure,
				FailureDomain:   cmp.Or(t.FailureDomain, c.FailureDomain),
				MinReadySeconds: firstNonNil(t.MinReadySeconds, c.MinReadySeconds),
				ReadinessGates:  firstList(t.ReadinessGates, c.ReadinessGates),
				Taints:          firstList(t.Taints, c.Taints),
				Deletion: clusterv1.MachineDeletionSpec{
					NodeDrainTimeoutSeconds:        firstNonNil(t.Deletion.NodeDrainTimeoutSeconds, c.Deletion.NodeDrainTimeoutSeconds),
					NodeVolumeDetachTimeoutSeconds: firstNonNil(t.Deletion.NodeVolumeDetachTimeoutSeconds, c.Deletion.NodeVolumeDetachTimeoutSeconds),
					NodeDeletionTimeoutSeconds:     firstNonNil(t.Deletion.NodeDeletionTimeoutSeconds, c.Deletion.NodeDeletionTimeoutSeconds),
				},
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

// rollout returns the rollout strategy of the topology, if it has one, or else of the class.
func rollout(t *clusterv1.MachineDeploymentTopology, c *clusterv1.MachineDeploymentClass) clusterv1.MachineDeploymentRolloutSpec {
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

// version returns the version that a worker may have now.
func (d *Draft) version(versions map[string]string, name string) string {
	return cmp.Or(versions[name], d.Cluster.Spec.Topology.Version)
}

// pool adds a MachinePool with its bootstrap config and its infrastructure.
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
	b.add(keyed{w.key, want}, w.live.Object)
	return nil
}

func (b *builder) machinePool(w worker, bootstrap, infrastructure clusterv1.ContractVersionedObjectReference) *clusterv1.MachinePool {
	t, c := w.pool, w.poolClass
	labels := b.labels(w.key, c.Metadata.Labels, t.Metadata.Labels)
	annotations := withoutUpgradeControls(merge(c.Metadata.Annotations, withoutControlAnnotations(t.Metadata.Annotations)))
	mp := &clusterv1.MachinePool{}
	mp.Namespace, mp.Name, mp.Labels, mp.Annotations = b.Cluster.Namespace, b.Names[w.key], labels, annotations
	mp.Spec = clusterv1.MachinePoolSpec{
		ClusterName: b.Cluster.Name, Replicas: t.Replicas, FailureDomains: firstList(t.FailureDomains, c.FailureDomains),
		Template: clusterv1.MachineTemplateSpec{
			ObjectMeta: clusterv1.ObjectMeta{Labels: labels, Annotations: annotations},
			Spec: clusterv1.MachineSpec{
				ClusterName: b.Cluster.Name, Version: b.version(b.Versions.Pools, t.Name),
				Bootstrap: clusterv1.Bootstrap{ConfigRef: bootstrap}, InfrastructureRef: infrastructure,
				MinReadySeconds: firstNonNil(t.MinReadySeconds, c.MinReadySeconds),
				Taints:          firstList(t.Taints, c.Taints),
				Deletion: clusterv1.MachineDeletionSpec{
					NodeDrainTimeoutSeconds:        firstNonNil(t.Deletion.NodeDrainTimeoutSeconds, c.Deletion.NodeDrainTimeoutSeconds),
					NodeVolumeDetachTimeoutSeconds: firstNonNil(t.Deletion.NodeVolumeDetachTimeoutSeconds, c.Deletion.NodeVolumeDetachTimeoutSeconds),
					NodeDeletionTimeoutSeconds:     firstNonNil(t.Deletion.NodeDeletionTimeoutSeconds, c.Deletion.NodeDeletionTimeoutSeconds),
				},
			},
		},
	}
	return mp
}
