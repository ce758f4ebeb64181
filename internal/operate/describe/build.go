package describe

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Options select what the tree shows. They are the flags of `describe cluster`.
type Options struct {
	// ShowConditions names the objects whose conditions are shown as rows: "all", a kind, or kind/name;
	// case-insensitive.
	ShowConditions []string
	// ShowMachineSets shows all MachineSets between MachineDeployments and Machines, not only those with an issue of
	// their own.
	ShowMachineSets bool
	// ShowResourceSets shows all ClusterResourceSets that apply to the cluster, not only those with an issue.
	ShowResourceSets bool
	// ShowTemplates shows the templates of machines.
	ShowTemplates bool
	// Echo shows infrastructure and bootstrap objects of machines even if they have no information that their machine
	// does not have.
	Echo bool
	// Grouping shows machines in the same state as one row.
	Grouping bool
	// Deprecated shows the v1beta1 conditions.
	Deprecated bool
}

// Build arranges the snapshot as a tree. `slipway describe cluster` prints it, the page of a cluster shows it (package
// ui), and package progress derives its steps from it.
func Build(s Snapshot, o Options) *Object {
	b := builder{Snapshot: s, Options: o}
	root := b.core(s.Cluster, "Cluster")
	root.Replicas = clusterReplicas(s.Cluster)
	root.add(b.referenced("ClusterInfrastructure", s.Cluster.Spec.InfrastructureRef))
	root.add(b.controlPlane())
	root.add(b.workers())
	root.add(b.addons())
	root.add(b.hooks())
	root.chooseShown()
	return root
}

// hooks returns the handlers of Runtime Extensions that block the topology.
func (b builder) hooks() *Object {
	if len(b.Hooks) == 0 {
		return nil
	}
	return &Object{Role: "Hooks", Conditions: b.Hooks, ShowConditions: true}
}

// builder creates the rows of the tree. [Build] makes one; group.go, health.go, hosts.go and rows.go have the other
// methods.
type builder struct {
	Snapshot
	Options
}

func (o *Object) add(children ...*Object) {
	for _, c := range children {
		if c != nil {
			o.Children = append(o.Children, c)
		}
	}
}

// controlPlane returns the control plane with its machines. Control plane machines without a control plane object get a
// row of their own.
func (b builder) controlPlane() *Object {
	row := b.referenced("ControlPlane", b.Cluster.Spec.ControlPlaneRef)
	var machines []*Object
	for i := range b.Machines {
		if _, ok := b.Machines[i].Labels[clusterv1.MachineControlPlaneLabel]; ok {
			machines = append(machines, b.machine(&b.Machines[i]))
		}
	}
	if row == nil {
		if len(machines) == 0 {
			return nil
		}
		row = &Object{Role: "ControlPlane"}
	}
	if b.ShowTemplates {
		if ref, ok := b.controlPlaneTemplate(); ok {
			row.add(b.object("MachineInfrastructureTemplate", ref))
		}
	}
	row.add(b.group(machines)...)
	return row
}

func (b builder) workers() *Object {
	row := &Object{Role: "Workers"}
	for i := range b.Deployments {
		row.add(b.deployment(&b.Deployments[i]))
	}
	for i := range b.Sets {
		if metav1.GetControllerOf(&b.Sets[i]) == nil {
			row.add(b.set(&b.Sets[i]))
		}
	}
	for i := range b.Pools {
		row.add(b.pool(&b.Pools[i]))
	}
	var others []*Object
	for i := range b.Machines {
		m := &b.Machines[i]
		if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; !ok && !b.placed(m) {
			others = append(others, b.machine(m))
		}
	}
	row.add(b.group(others)...)
	if len(row.Children) == 0 {
		return nil
	}
	return row
}

// placed reports whether a worker machine is shown below a MachineSet or MachinePool.
func (b builder) placed(m *clusterv1.Machine) bool {
	for i := range b.Sets {
		if ownedBy(m, "MachineSet", b.Sets[i].Name, clusterv1.MachineSetNameLabel) {
			return true
		}
	}
	for i := range b.Pools {
		if ownedBy(m, "MachinePool", b.Pools[i].Name, clusterv1.MachinePoolNameLabel) {
			return true
		}
	}
	return false
}

func (b builder) deployment(d *clusterv1.MachineDeployment) *Object {
	row := b.core(d, "MachineDeployment")
	row.Replicas = &Replicas{d.Spec.Replicas, d.Status.Replicas, d.Status.AvailableReplicas, d.Status.ReadyReplicas, d.Status.UpToDateReplicas}
	b.templates(row, d.Spec.Template.Spec)
	var machines []*Object
	for i := range b.Sets {
		if !ownedBy(&b.Sets[i], "MachineDeployment", d.Name, clusterv1.MachineDeploymentNameLabel) {
			continue
		}
		if set := b.set(&b.Sets[i]); b.ShowMachineSets || set.hasOwnIssue(row) {
			row.add(set)
			continue
		}
		machines = append(machines, b.machinesOf("MachineSet", b.Sets[i].Name)...)
	}
	sortObjects(machines)
	row.add(b.group(machines)...)
	return row
}

func (b builder) set(s *clusterv1.MachineSet) *Object {
	row := b.core(s, "MachineSet")
	row.Replicas = &Replicas{s.Spec.Replicas, s.Status.Replicas, s.Status.AvailableReplicas, s.Status.ReadyReplicas, s.Status.UpToDateReplicas}
	if metav1.GetControllerOf(s) == nil {
		b.templates(row, s.Spec.Template.Spec)
	}
	row.add(b.group(b.machinesOf("MachineSet", s.Name))...)
	return row
}

func (b builder) pool(p *clusterv1.MachinePool) *Object {
	row := b.core(p, "MachinePool")
	row.Replicas = &Replicas{p.Spec.Replicas, p.Status.Replicas, p.Status.AvailableReplicas, p.Status.ReadyReplicas, p.Status.UpToDateReplicas}
	b.details(row, p.Spec.Template.Spec, "MachinePoolInfrastructure")
	row.add(b.group(b.machinesOf("MachinePool", p.Name))...)
	return row
}

func (b builder) templates(row *Object, spec clusterv1.MachineSpec) {
	if b.ShowTemplates {
		row.add(b.referenced("MachineInfrastructureTemplate", spec.InfrastructureRef))
		row.add(b.referenced("BootstrapConfigTemplate", spec.Bootstrap.ConfigRef))
	}
}

func (b builder) machinesOf(kind, name string) []*Object {
	label := map[string]string{"MachineSet": clusterv1.MachineSetNameLabel, "MachinePool": clusterv1.MachinePoolNameLabel}[kind]
	var rows []*Object
	for i := range b.Machines {
		if ownedBy(&b.Machines[i], kind, name, label) {
			rows = append(rows, b.machine(&b.Machines[i]))
		}
	}
	return rows
}

func (b builder) machine(m *clusterv1.Machine) *Object {
	row := b.core(m, "Machine")
	one := int32(1)
	row.Replicas = &Replicas{
		Current:   &one,
		Available: row.count("Available"),
		Ready:     row.count("Ready"),
		UpToDate:  row.count("UpToDate"),
	}
	row.Remediation = b.remediation(m)
	b.details(row, m.Spec, "MachineInfrastructure")
	return row
}

// details adds the infrastructure and bootstrap objects of a row, unless they only repeat its state.
func (b builder) details(row *Object, spec clusterv1.MachineSpec, infrastructure string) {
	machine := b.referenced(infrastructure, spec.InfrastructureRef)
	b.addHost(machine, row, refOf(spec.InfrastructureRef))
	for _, child := range []*Object{machine, b.referenced("BootstrapConfig", spec.Bootstrap.ConfigRef)} {
		if child != nil && (b.Echo || child.ShowConditions || len(child.Children) > 0 || !repeatsParent(child, row)) {
			row.add(child)
		}
	}
}

// repeatsParent reports whether a child adds no information to its parent: its issues are displayed there, and it is
// ready, reports no state, or has the same status. The tree leaves such a child out, unless Options.Echo is set.
func repeatsParent(child, parent *Object) bool {
	if child.Missing != "" || child.DeletedAt != nil && parent.DeletedAt == nil {
		return false
	}
	heard := parent.displayableConditions()
	for _, issue := range child.Issues() {
		if !heard.displays(issue.Message) {
			return false
		}
	}
	c, p := child.Condition("Ready"), parent.Headline()
	if c == nil || c.Status == metav1.ConditionTrue {
		return true
	}
	return p != nil && c.Status == p.Status && (c.Message != "" || c.Reason == p.Reason)
}

// hasOwnIssue reports whether a set has an issue that is displayed neither at its deployment nor at its Machines.
func (o *Object) hasOwnIssue(deployment *Object) bool {
	heard := deployment.displayableConditions()
	for _, c := range o.Children {
		heard = append(heard, c.displayableConditions()...)
	}
	return slices.ContainsFunc(o.Issues(), func(c Condition) bool { return !heard.displays(c.Message) })
}

func (b builder) addons() *Object {
	row := &Object{Role: "Addons"}
	for _, name := range b.ResourceSets {
		set := b.object("", Ref{addonsv1.GroupVersion.Group, "ClusterResourceSet", name})
		if b.ShowResourceSets || set.ShowConditions || len(set.Issues()) > 0 && !b.Applied[name] {
			row.add(set)
		}
	}
	if len(row.Children) == 0 {
		return nil
	}
	return row
}

func sortObjects(objects []*Object) {
	slices.SortFunc(objects, func(a, b *Object) int { return cmp.Compare(a.Name, b.Name) })
}

// Unmatched returns the entries of ShowConditions that match no object of the tree. `slipway describe cluster` warns
// about them.
func (o Options) Unmatched(root *Object) []string {
	return slices.DeleteFunc(slices.Clone(o.ShowConditions), func(want string) bool { return strings.EqualFold(want, "all") || root.matches(want) })
}

// matches reports whether the subtree contains an object of the kind or kind/name.
func (o *Object) matches(want string) bool {
	kind, name, one := strings.Cut(want, "/")
	if strings.EqualFold(kind, o.Kind) && (!one || strings.EqualFold(name, o.Name) || slices.ContainsFunc(o.Members, func(m string) bool { return strings.EqualFold(m, name) })) {
		return true
	}
	return slices.ContainsFunc(o.Children, func(c *Object) bool { return c.matches(want) })
}

// Kinds returns the kinds of the objects of the subtree, sorted. `slipway describe cluster` lists them if
// --show-conditions matches no object.
func (o *Object) Kinds() []string {
	var kinds []string
	if o.Kind != "" {
		kinds = append(kinds, o.Kind)
	}
	for _, c := range o.Children {
		kinds = append(kinds, c.Kinds()...)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// showsConditions reports whether the conditions of an object are shown as rows. The rows of the tree (rows.go) call
// it.
func (o Options) showsConditions(kind, name string) bool {
	return slices.ContainsFunc(o.ShowConditions, func(want string) bool {
		return strings.EqualFold(want, "all") || strings.EqualFold(want, kind) || strings.EqualFold(want, kind+"/"+name)
	})
}
