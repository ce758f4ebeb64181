package topology

import (
	"cmp"
	"maps"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Source is the template of the class for a part, before the patches of the class are applied. [NewDraft] lists them,
// [Draft.Patch] patches them, and the [builder] creates the desired objects from them.
type Source struct {
	Key
	// Class of the worker; empty if the part does not belong to a worker.
	Class    string
	Ref      clusterv1.ClusterClassTemplateReference
	Template contract.Object
}

// Draft is a topology before the patches are applied: the source and the name of each part. It is the first step of
// computing the desired state; [Draft.Patch], [Draft.Rotate] and [Draft.DesiredState] follow.
type Draft struct {
	Snapshot
	Versions Versions
	// Sources in the order of the parts.
	Sources []Source
	// Names of the parts. A template that is about to be replaced has its current name until [Draft.Rotate] is called.
	Names map[Key]string

	namer   namer
	workers []worker
}

// worker is a Worker with its class. It exists or may be created. [NewDraft] lists them, and the [builder] and
// [Draft.Patch] read them.
type worker struct {
	Worker
	bootstrap, infrastructure Key
	class                     WorkerClass
	live                      LiveWorker
}

// NewDraft returns the draft of a topology. The topology controller calls it in each reconciliation. It returns an
// error if the class lacks something that the topology references.
func NewDraft(s Snapshot, v Versions) (*Draft, error) {
	d := &Draft{Snapshot: s, Versions: v, Names: map[Key]string{}, namer: namer{cluster: s.Cluster.Name, seed: client.ObjectKeyFromObject(s.Cluster).String()}}
	for _, step := range []func() error{d.draftCluster, d.draftWorkers} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *Draft) draftCluster() error {
	class := d.Class.Spec
	err := d.draftSingle(Key{Role: InfraCluster}, d.Live.InfraCluster, class.Infrastructure.TemplateRef, class.Infrastructure.Naming.Template)
	if err != nil {
		return err
	}
	if ref := class.ControlPlane.MachineInfrastructure.TemplateRef; ref.IsDefined() {
		if err := d.draftRevision(Source{Key: Key{Role: controlPlaneMachines}, Ref: ref}, contract.MachineInfrastructure(d.Live.ControlPlane).Or(clusterv1.ContractVersionedObjectReference{})); err != nil {
			return err
		}
	}
	return d.draftSingle(Key{Role: ControlPlane}, d.Live.ControlPlane, class.ControlPlane.TemplateRef, class.ControlPlane.Naming.Template)
}

// draftSingle adds a part that exists once in the Cluster. It retains the name of the existing object.
func (d *Draft) draftSingle(key Key, live contract.Object, ref clusterv1.ClusterClassTemplateReference, naming string) error {
	if _, err := d.addSource(Source{Key: key, Ref: ref}); err != nil {
		return err
	}
	if live.Unstructured != nil {
		d.Names[key] = live.GetName()
		return nil
	}
	var err error
	d.Names[key], err = d.namer.object(key, cmp.Or(naming, clusterNaming), func(string) bool { return false })
	return err
}

// draftRevision adds a part that is named after its content. A referenced part retains its name even if it does not
// exist, because it may still be restored, and another name would replace Machines.
func (d *Draft) draftRevision(source Source, ref clusterv1.ContractVersionedObjectReference) error {
	source, err := d.addSource(source)
	if err != nil {
		return err
	}
	content, _ := contract.Template(source.Template)
	if ref.Name != "" && ref.APIGroup == source.Ref.GroupVersionKind().Group && (ref.Kind == source.Ref.Kind || ref.Kind == content.Kind) {
		d.Names[source.Key] = ref.Name
		return nil
	}
	made := []any{d.Names[source.OfWorker()], content.Spec}
	if ref.Name != "" { // of another kind, which may have had the same spec
		made = append(made, ref.Name)
	}
	d.Names[source.Key], err = d.namer.revision(source.Key, made)
	return err
}

func (d *Draft) addSource(source Source) (Source, error) {
	source.Template = d.Templates[source.Ref]
	if source.Template.Unstructured == nil {
		return source, fault.New(fault.Invalid, "TemplateMissing", "%s %s, the %s of ClusterClass %s, does not exist: create it",
			source.Ref.Kind, source.Ref.Name, source.Key, d.Class.Name)
	}
	if _, ok := contract.Template(source.Template); !ok {
		return source, fault.New(fault.Invalid, "NotATemplate",
			"%s %s, the %s of ClusterClass %s, is not a template: its kind must end with Template, and it must have spec.template",
			source.Ref.Kind, source.Ref.Name, source.Key, d.Class.Name)
	}
	d.Sources = append(d.Sources, source)
	return source, nil
}

func (d *Draft) draftWorkers() error {
	for _, t := range Workers(d.Cluster.Spec.Topology) {
		w := worker{Worker: t, bootstrap: Key{deploymentBootstrap, t.Key.Worker}, infrastructure: Key{deploymentInfrastructure, t.Key.Worker}, live: d.Live.worker(t.Key)}
		if t.Role == Pool {
			w.bootstrap.Role, w.infrastructure.Role = poolBootstrap, poolInfrastructure
		}
		if w.live.Object == nil && d.Versions.Withheld[w.Key] {
			continue
		}
		class := FindWorkerClass(d.Class, t.Role, t.Class)
		if class == nil {
			return fault.New(fault.Invalid, "WorkerClassMissing", "%s is of class %s, which ClusterClass %s does not have: "+
				"correct spec.topology.workers of the Cluster, or add the class", t.Key, t.Class, d.Class.Name)
		}
		w.class = *class
		if err := d.draftWorker(w); err != nil {
			return err
		}
		d.workers = append(d.workers, w)
	}
	return nil
}

func (d *Draft) draftWorker(w worker) error {
	if w.live.Object != nil {
		d.Names[w.Key] = w.live.Object.GetName()
	} else {
		naming := deploymentNaming
		if w.Role == Pool {
			naming = poolNaming
		}
		name, err := d.namer.object(w.Key, cmp.Or(w.class.Naming, naming), func(name string) bool { return d.Live.Names[name] })
		if err != nil {
			return err
		}
		d.Names[w.Key] = name
	}
	machine := w.live.machine()
	if err := d.draftRevision(Source{Key: w.bootstrap, Class: w.Class, Ref: w.class.Bootstrap}, machine.Bootstrap.ConfigRef); err != nil {
		return err
	}
	return d.draftRevision(Source{Key: w.infrastructure, Class: w.Class, Ref: w.class.Infrastructure}, machine.InfrastructureRef)
}

// obsolete returns the workers and health checks that no longer belong to the topology, sorted by name. The topology
// controller deletes them. [Draft.DesiredState] calls it.
func (d *Draft) obsolete(parts []Part) []client.Object {
	out := slices.Clone(d.Live.Surplus)
	wanted := map[string]bool{}
	for _, p := range parts {
		if p.Role == ControlPlaneHealthCheck || p.Role == deploymentHealthCheck {
			wanted[p.Want.GetName()] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Live.HealthChecks)) {
		if !wanted[name] {
			out = append(out, d.Live.HealthChecks[name])
		}
	}
	return out
}
