package foreign

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/foreign/provider"
)

// template returns a template of machines or configs.
func template(w *world, k provider.Kind, name string) *unstructured.Unstructured {
	u := k.New(w.namespace, name)
	provider.Set(u, map[string]any{"metadata": map[string]any{"labels": map[string]any{"from": "template"}}, "spec": map[string]any{"size": name}}, "spec", "template")
	return u
}

// machineSpec is that of the template of Machines.
func (f family) machineSpec(machines, configs string) clusterv1.MachineSpec {
	return clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.3", InfrastructureRef: f.machineTemplate.Ref(machines), Bootstrap: clusterv1.Bootstrap{ConfigRef: f.configTemplate.Ref(configs)}}
}

// machinesOf are the Machines with a label.
func (w *world) machinesOf(label, value string) []clusterv1.Machine {
	w.Helper()
	var list clusterv1.MachineList
	w.must(w.List(w.Context(), &list, client.InNamespace(w.namespace), client.MatchingLabels{label: value}))
	return list.Items
}

// deploymentStory has Machines that are made from templates.
func (w *world) deploymentStory(f family) {
	c := w.up(f).Cluster
	w.create(template(w, f.machineTemplate, "t1"), template(w, f.machineTemplate, "t2"), template(w, f.configTemplate, "t"))
	replicas := int32(2)
	d := &clusterv1.MachineDeployment{ObjectMeta: w.meta("d")}
	d.Spec.ClusterName, d.Spec.Replicas, d.Spec.Template.Spec = "c", &replicas, f.machineSpec("t1", "t")
	w.create(d)
	var names []string
	w.check("39, 40 a MachineDeployment clones foreign templates", func(w *world) {
		w.saying(d, "Available", "True")
		for _, m := range w.machinesOf(clusterv1.MachineDeploymentNameLabel, "d") {
			names = append(names, m.Name)
			infra := f.machine.New(w.namespace, m.Spec.InfrastructureRef.Name)
			w.eventually(infra, func() string { return owned(infra, &m, "Machine", "c") })
			a := infra.GetAnnotations()
			if a[clusterv1.TemplateClonedFromNameAnnotation] != "t1" || a[clusterv1.TemplateClonedFromGroupKindAnnotation] != f.machineTemplate.GroupKind().String() || infra.GetLabels()["from"] != "template" {
				w.Errorf("%s: annotations %v, labels %v", m.Name, a, infra.GetLabels())
			}
			config := f.config.New(w.namespace, m.Spec.Bootstrap.ConfigRef.Name)
			w.eventually(config, func() string { return owned(config, &m, "Machine", "c") })
		}
		if len(names) != 2 {
			w.Errorf("Machines %v", names)
		}
		t := f.machineTemplate.New(w.namespace, "t1")
		w.eventually(t, func() string {
			return unless(len(t.GetOwnerReferences()) == 1 && t.GetOwnerReferences()[0].UID == c.UID, "%v", t.GetOwnerReferences())
		})
	})
	w.check("68 owners of an older version are brought up to date", func(w *world) {
		sets := &clusterv1.MachineSetList{}
		w.must(w.List(w.Context(), sets, client.InNamespace(w.namespace)))
		outdated := []client.Object{f.machineTemplate.New(w.namespace, "t1"), f.configTemplate.New(w.namespace, "t"), d}
		for i := range sets.Items {
			outdated = append(outdated, &sets.Items[i])
		}
		for _, name := range names {
			m := &clusterv1.Machine{ObjectMeta: w.meta(name)}
			outdated = append(outdated, m, f.machine.New(w.namespace, name), f.config.New(w.namespace, name))
		}
		w.renewsOwners(outdated...)
	})
	w.check("58 labels of the deployment reach Machines and their infrastructure without a rollout", func(w *world) {
		change(w, d, func(d *clusterv1.MachineDeployment) { d.Spec.Template.Labels["tier"] = "gold" })
		for _, name := range names {
			infra := f.machine.New(w.namespace, name)
			w.eventually(infra, func() string {
				return unless(infra.GetLabels()["tier"] == "gold" && infra.GetLabels()["from"] == "template", "%v", infra.GetLabels())
			})
		}
	})
	w.check("59, 74 another template replaces the Machines", func(w *world) {
		change(w, d, func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.InfrastructureRef.Name = "t2" })
		w.eventually(d, func() string {
			n := d.Status.UpToDateReplicas
			return unless(d.Status.ObservedGeneration == d.Generation && n != nil && *n == 2 && *d.Status.Replicas == 2, "replicas %v, up to date %v", d.Status.Replicas, n)
		})
		for _, name := range names {
			w.gone(f.machine.New(w.namespace, name))
		}
		for _, m := range w.machinesOf(clusterv1.MachineDeploymentNameLabel, "d") {
			infra := f.machine.New(w.namespace, m.Name)
			w.eventually(infra, func() string {
				size, _, _ := unstructured.NestedString(infra.Object, "spec", "size")
				return unless(size == "t2", "size %q", size)
			})
		}
	})
	w.check("74 the deployment scales", func(w *world) {
		change(w, d, func(d *clusterv1.MachineDeployment) { *d.Spec.Replicas = 1 })
		w.eventually(d, func() string { return unless(*d.Status.Replicas == 1, "replicas %d", *d.Status.Replicas) })
	})
}

// newPool returns a MachinePool with bootstrap data that nothing has to make.
func (w *world) newPool(f family, name string) *clusterv1.MachinePool {
	data, replicas := "data", int32(2)
	p := &clusterv1.MachinePool{ObjectMeta: w.meta(name)}
	p.Spec.ClusterName, p.Spec.Replicas = "c", &replicas
	p.Spec.Template.Spec = clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.3", InfrastructureRef: f.pool.Ref(name), Bootstrap: clusterv1.Bootstrap{DataSecretName: &data}}
	return p
}

func (w *world) poolStory(f family) {
	w.up(f)
	p, infra := w.newPool(f, "p"), f.pool.New(w.namespace, "p")
	w.create(p, infra)
	w.check("41, 43 a MachinePool without Machines finds its Nodes, and follows when it scales", func(w *world) {
		w.eventually(infra, func() string { return owned(infra, p, "MachinePool", "c") })
		w.saying(p, "Available", "True")
		if len(p.Status.NodeRefs) != 2 || len(p.Spec.ProviderIDList) != 2 {
			w.Errorf("Nodes %v, provider IDs %v", p.Status.NodeRefs, p.Spec.ProviderIDList)
		}
		for _, n := range []int32{3, 1} {
			change(w, p, func(p *clusterv1.MachinePool) { p.Spec.Replicas = &n })
			w.eventually(p, func() string {
				return unless(len(p.Spec.ProviderIDList) == int(n) && len(p.Status.NodeRefs) == int(n) && *p.Status.ReadyReplicas == n, "provider IDs %v, Nodes %v", p.Spec.ProviderIDList, p.Status.NodeRefs)
			})
		}
	})
	w.check("68 the owner of a pool of an older version is brought up to date", func(w *world) { w.renewsOwners(p, infra) })
	w.check("42 a MachinePool with machines gets a Machine for each", func(w *world) { w.poolMachines(f) })
}

// renewsOwners has owners of an older version in objects, as those that come from an older management cluster have, and sees them brought up
// to date.
func (w *world) renewsOwners(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		w.must(w.Get(w.Context(), client.ObjectKeyFromObject(o), o))
		before, refs := o.DeepCopyObject().(client.Object), slices.Clone(o.GetOwnerReferences())
		for i := range refs {
			refs[i].APIVersion = strings.Replace(refs[i].APIVersion, clusterv1.GroupVersion.String(), "cluster.x-k8s.io/v1beta1", 1)
		}
		o.SetOwnerReferences(refs)
		w.must(w.Patch(w.Context(), o, client.MergeFrom(before)))
	}
	for _, o := range objects {
		w.eventually(o, func() string {
			refs := o.GetOwnerReferences()
			ok := len(refs) > 0 && !slices.ContainsFunc(refs, func(ref metav1.OwnerReference) bool { return ref.APIVersion == "cluster.x-k8s.io/v1beta1" })
			return unless(ok, "%T %s: owners are %v", o, o.GetName(), refs)
		})
	}
}

// poolMachines plays a provider that makes machines for its pool.
func (w *world) poolMachines(f family) {
	p, infra := w.newPool(f, "machines"), annotated(f.pool.New(w.namespace, "machines"), provider.HandsOff)
	w.create(p, infra)
	w.eventually(infra, func() string { return owned(infra, p, "MachinePool", "c") })
	for i := range 2 {
		w.poolMachine(f, infra, i)
	}
	w.poolReports(f, infra, 2)
	w.provisioned(f, infra, true)
	w.saying(p, "Available", "True")
	machines := w.machinesOf(clusterv1.MachinePoolNameLabel, "machines")
	if len(machines) != 2 {
		w.Errorf("%d Machines", len(machines))
	}
	for _, m := range machines {
		o := f.machine.New(w.namespace, m.Spec.InfrastructureRef.Name)
		w.eventually(o, func() string { return owned(o, &m, "Machine", "c") })
	}
	w.check("43 an autoscaler of the infrastructure says how many replicas there are", func(w *world) {
		change(w, p, func(p *clusterv1.MachinePool) {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, clusterv1.ReplicasManagedByAnnotation, "scaler")
		})
		w.poolMachine(f, infra, 2)
		w.poolReports(f, infra, 3)
		w.eventually(p, func() string {
			n := len(w.machinesOf(clusterv1.MachinePoolNameLabel, "machines"))
			return unless(p.Spec.Replicas != nil && *p.Spec.Replicas == 3 && n == 3, "replicas %v, %d Machines", p.Spec.Replicas, n)
		})
	})
	w.check("43 a Machine of a pool is deleted with its infrastructure", func(w *world) {
		m := w.machinesOf(clusterv1.MachinePoolNameLabel, "machines")[0]
		w.must(w.Delete(w.Context(), &m))
		w.gone(&m, f.machine.New(w.namespace, m.Spec.InfrastructureRef.Name))
	})
}

// poolMachine creates a machine of the provider's pool.
func (w *world) poolMachine(f family, pool *unstructured.Unstructured, i int) {
	w.Helper()
	yes := true
	m := f.machine.New(w.namespace, fmt.Sprintf("machines-%d", i))
	m.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: "machines"})
	m.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: f.pool.GroupVersion().String(), Kind: f.pool.Kind, Name: "machines", UID: pool.GetUID(), Controller: &yes}})
	w.create(m)
}

// poolReports says what the provider's pool has: so many machines.
func (w *world) poolReports(f family, pool *unstructured.Unstructured, n int) {
	w.Helper()
	var ids []any
	for i := range n {
		ids = append(ids, provider.ID(w.namespace, fmt.Sprintf("machines-%d", i)))
	}
	change(w, pool, func(u *unstructured.Unstructured) {
		provider.Set(u, f.machine.Kind, "status", "infrastructureMachineKind")
		provider.Set(u, int64(n), "status", "replicas")
		provider.Set(u, ids, "spec", "providerIDList")
	})
}
