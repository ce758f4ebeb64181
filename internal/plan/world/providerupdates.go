package world

import (
	"fmt"
	"hash/crc32"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// simulate updates an object as its provider would, and returns functions to call after the update is stored, which
// change the workload cluster. It changes nothing if there is nothing to do or the contract requires the provider to
// wait; [Providers] compares the object with a copy to find out.
func (p *Providers) simulate(part role, u *unstructured.Unstructured) (follows []func()) {
	if u.GetDeletionTimestamp() != nil {
		u.SetFinalizers(nil)
		return nil
	}
	switch part {
	case infraCluster:
		p.playInfraCluster(u)
	case controlPlane:
		return p.playControlPlane(u)
	case infraMachine:
		return p.playInfraMachine(u)
	case bootstrapConfig:
		return p.playBootstrapConfig(u)
	case infraPool:
		return p.playInfraPool(u)
	case inventoryHost:
		if checked, err := p.inventory.Check(u); err == nil {
			u.Object = checked.Object
		}
	}
	return nil
}

// joins returns a function that adds the Node of a started instance after a delay.
func (p *Providers) joins(cluster client.ObjectKey, n Node) func() {
	return func() {
		p.world.After(joining, "join "+cluster.String()+" "+n.ProviderID, func() {
			p.workloads.AddNode(cluster, n)
		})
	}
}

// same reports whether two objects have the same content. [Providers] stores an object only if an update changed it.
func same(a, b *unstructured.Unstructured) bool { return reflect.DeepEqual(a.Object, b.Object) }

// done marks an object as provisioned in the form of both contract versions. The schema of its kind prunes the fields
// that it does not define.
func done(u *unstructured.Unstructured, initialized string) {
	set(u, true, "status", "initialization", initialized)
	set(u, true, "status", "ready")
}

func (p *Providers) playInfraCluster(u *unstructured.Unstructured) {
	if isTrue(u, "status", "initialization", "provisioned") || isTrue(u, "status", "ready") {
		return
	}
	if cluster := p.cluster(u); cluster != nil && !hasEndpoint(cluster) && !hasControlPlane(cluster) {
		set(u, map[string]any{"host": u.GetName() + ".whatif.invalid", "port": int64(6443)}, "spec", "controlPlaneEndpoint")
	}
	done(u, "provisioned")
	p.setConditionTrue(u, clusterv1.ReadyCondition)
}

func hasEndpoint(u *unstructured.Unstructured) bool {
	host, _, _ := unstructured.NestedString(u.Object, "spec", "controlPlaneEndpoint", "host")
	return host != ""
}

func hasControlPlane(u *unstructured.Unstructured) bool {
	name, _, _ := unstructured.NestedString(u.Object, "spec", "controlPlaneRef", "name")
	return name != ""
}

func (p *Providers) playControlPlane(u *unstructured.Unstructured) (follows []func()) {
	cluster := p.cluster(u)
	if cluster == nil || !isTrue(cluster, "status", "initialization", "infrastructureProvisioned") {
		return nil
	}
	if !hasEndpoint(u) && !hasEndpoint(cluster) {
		set(u, map[string]any{"host": u.GetName() + ".whatif.invalid", "port": int64(6443)}, "spec", "controlPlaneEndpoint")
	}
	initialized := isTrue(u, "status", "initialization", "controlPlaneInitialized") || isTrue(u, "status", "initialized")
	version, _, _ := unstructured.NestedString(u.Object, "spec", "version")
	replicas, scales, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	running, _, _ := unstructured.NestedString(u.Object, "status", "version")
	if scales {
		have, _, _ := unstructured.NestedInt64(u.Object, "status", "replicas")
		if replicas, follows = p.claimForControlPlane(u, have, replicas, initialized && version != running); replicas == have && len(follows) > 0 {
			return follows
		}
	}
	if !initialized {
		done(u, "controlPlaneInitialized")
		set(u, true, "status", "initialized")
		p.setConditionTrue(u, clusterv1.ReadyCondition)
		p.setConditionTrue(u, clusterv1.AvailableCondition)
		key := clusterOf(u)
		follows = append(follows, func() {
			p.world.After(preparing, "connect "+key.String(), func() { p.workloads.Connect(key) })
		})
	}
	if initialized && version == running && !isScaled(u, replicas, scales) {
		return nil
	}
	set(u, u.GetGeneration(), "status", "observedGeneration")
	if version != "" {
		set(u, version, "status", "version")
		if _, ok, _ := unstructured.NestedSlice(u.Object, "status", "versions"); ok {
			set(u, []any{map[string]any{"version": version, "replicas": max(replicas, 1)}}, "status", "versions")
		}
	}
	if !scales {
		set(u, true, "status", "externalManagedControlPlane")
		return follows
	}
	for _, name := range []string{"replicas", "readyReplicas", "availableReplicas", "upToDateReplicas", "updatedReplicas"} {
		set(u, replicas, "status", name)
	}
	return follows
}

// isScaled reports whether the number of replicas differs from the desired number.
func isScaled(u *unstructured.Unstructured, replicas int64, scales bool) bool {
	have, _, _ := unstructured.NestedInt64(u.Object, "status", "replicas")
	return scales && have != replicas
}

// playInfraMachine waits for the Machine, the infrastructure of the Cluster and the bootstrap data, as the contract
// requires.
func (p *Providers) playInfraMachine(u *unstructured.Unstructured) (follows []func()) {
	if isTrue(u, "status", "initialization", "provisioned") || isTrue(u, "status", "ready") {
		return nil
	}
	machine, cluster := p.owner(u, "Machine"), p.cluster(u)
	if machine == nil || cluster == nil || !isTrue(cluster, "status", "initialization", "infrastructureProvisioned") {
		return nil
	}
	if p.inventory != nil && u.GroupVersionKind().GroupKind() == p.inventory.MachineKind() {
		hasHost, store := p.claimHost(u, machine)
		if store != nil {
			follows = append(follows, store)
		}
		if !hasHost {
			return follows
		}
	}
	if data, _, _ := unstructured.NestedString(machine.Object, "spec", "bootstrap", "dataSecretName"); data == "" {
		return follows
	}
	id, _, _ := unstructured.NestedString(u.Object, "spec", "providerID")
	if id == "" {
		id = providerID(u)
		set(u, id, "spec", "providerID")
	}
	if _, reported, _ := unstructured.NestedSlice(u.Object, "status", "addresses"); !reported {
		set(u, []any{map[string]any{"type": "Hostname", "address": u.GetName()}}, "status", "addresses")
	}
	done(u, "provisioned")
	p.setConditionTrue(u, clusterv1.ReadyCondition)
	version, _, _ := unstructured.NestedString(machine.Object, "spec", "version")
	return append(follows, p.joins(clusterOf(u), Node{Name: machine.GetName(), ProviderID: id, Version: version}))
}

// providerID returns an ID that the validation of this build's infrastructure machines accepts; other providers have no
// such validation.
func providerID(u *unstructured.Unstructured) string {
	return fmt.Sprintf("slipway:///slipway-%s-%08x", u.GetName(), crc32.ChecksumIEEE([]byte(u.GetNamespace()+"/"+u.GetName())))
}

func (p *Providers) playBootstrapConfig(u *unstructured.Unstructured) (follows []func()) {
	if isTrue(u, "status", "initialization", "dataSecretCreated") || isTrue(u, "status", "ready") {
		return nil
	}
	cluster := p.cluster(u)
	if cluster == nil || !isTrue(cluster, "status", "initialization", "infrastructureProvisioned") {
		return nil
	}
	_, ofControlPlane := u.GetLabels()[clusterv1.MachineControlPlaneLabel]
	if !ofControlPlane && !isTrue(cluster, "status", "initialization", "controlPlaneInitialized") {
		return nil
	}
	set(u, u.GetName(), "status", "dataSecretName")
	done(u, "dataSecretCreated")
	p.setConditionTrue(u, clusterv1.ReadyCondition)
	secret := dataSecret(u)
	return []func(){func() { _ = p.world.API.WriteAsSystem(secret, "provider") }} // such writes are not validated
}

// dataSecret returns the Secret with the bootstrap data, as the contract requires: labeled with the cluster, and
// controlled by the config.
func dataSecret(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	out.SetLabels(map[string]string{clusterv1.ClusterNameLabel: clusterOf(u).Name})
	yes := true
	out.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), UID: u.GetUID(), Controller: &yes},
	})
	return out
}
