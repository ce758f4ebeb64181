package rootcause

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/operate/describe"
)

// remediate adds the remediation of a MachineHealthCheck that is due to the remedy of a chain that begins with a Machine, and
// ends with it or with one of its provider objects. If the replacement of the Machine ends the problem, the remediation is the
// remedy.
func (s *search) remediate(o object, c *Chain) *Chain {
	if o.ref.Group != clusterv1.GroupVersion.Group || o.ref.Kind != "Machine" || len(c.Links) > 2 || c.weight == weightPaused {
		return c
	}
	if root := c.Root(); len(c.Links) == 2 && !slices.Contains(o.references(), root.Object) || root.Type == clusterv1.MachineExternallyRemediatedCondition {
		return c
	}
	due := s.remediationOf(o)
	if due == nil {
		return c
	}
	out := *c
	remedy := s.remediationRemedy(due)
	if due.BlockedReason == "" && !s.isOverdue(due) && (replaces(c.Remedy.Text) || c.isLate) {
		out.Remedy, out.isLate = remedy, false
		return &out
	}
	out.Remedy.Text = fmt.Sprintf("%s (%s)", c.Remedy.Text, remedy.Text)
	switch {
	case !c.Remedy.Automatic:
	case s.isOverdue(due):
		out.Remedy = remedy
	default:
		out.Remedy.At = remedy.At
	}
	return &out
}

// protectLastMachine removes the command of a remedy that deletes the only Machine of an initialized control plane, because its
// data would be lost. [Explain] and [Problems] call it for each chain.
func (s *search) protectLastMachine(c *Chain) {
	if !strings.Contains(c.Remedy.Command, " delete machine ") {
		return
	}
	root := c.Root().Object
	u, found := s.graph.Get(root)
	if !found {
		return
	}
	of := Ref{clusterv1.GroupVersion.Group, "Machine", root.Namespace, newObject(root, u).machine()}
	machine, found := s.graph.Get(of)
	if !found {
		return
	}
	for _, owner := range ownersOf(machine) {
		if strings.HasPrefix(owner.Group, "controlplane.") && s.isInitialized(owner) && s.countMachines(owner) == 1 {
			c.Remedy.Command = ""
			c.Remedy.Text += fmt.Sprintf(". %s is the only Machine of its control plane: to delete it loses the data of the Cluster, unless an etcd snapshot is restored", of)
		}
	}
}

// isInitialized reports whether a control plane may have data: it is initialized, or it cannot be read.
func (s *search) isInitialized(controlPlane Ref) bool {
	u, found := s.graph.Get(controlPlane)
	if !found {
		return true
	}
	initialized, _, _ := unstructured.NestedBool(u.Object, "status", "initialization", "controlPlaneInitialized")
	older, _, _ := unstructured.NestedBool(u.Object, "status", "initialized")
	return initialized || older
}

// countMachines returns the number of Machines that an object owns.
func (s *search) countMachines(owner Ref) (n int) {
	for _, ref := range s.graph.Owned(owner) {
		if ref.Group == clusterv1.GroupVersion.Group && ref.Kind == "Machine" {
			n++
		}
	}
	return n
}

// isOverdue reports whether a remediation should have happened.
func (s *search) isOverdue(due *describe.Remediation) bool {
	return due.BlockedReason == "" && s.now.Sub(due.At.Time) > remediationDelay
}

// remediationDelay is the time that a remediation may take to begin.
const remediationDelay = time.Minute

func (s *search) remediationRemedy(due *describe.Remediation) Remedy {
	if due.BlockedReason != "" {
		return Remedy{Text: fmt.Sprintf("MachineHealthCheck %s does not replace it: %s", due.HealthCheck, clip(due.BlockedReason))}
	}
	if s.isOverdue(due) {
		return Remedy{Text: fmt.Sprintf("MachineHealthCheck %s should have replaced it %s ago: check that its controller runs, and the owner of the Machine", due.HealthCheck, duration.HumanDuration(s.now.Sub(due.At.Time)))}
	}
	return Remedy{Automatic: true, At: due.At.Time, Text: fmt.Sprintf("MachineHealthCheck %s replaces it %s: %s", due.HealthCheck, in(due.At.Time, s.now), due.Condition)}
}

// in formats the time until t.
func in(t, now time.Time) string {
	if left := t.Sub(now); left > 0 {
		return "in " + duration.HumanDuration(left)
	}
	return "now"
}

var converter = runtime.DefaultUnstructuredConverter

// remediationOf returns the upcoming remediation of a Machine.
func (s *search) remediationOf(o object) *describe.Remediation {
	checks := s.graph.HealthChecks(o.ref.Namespace, o.cluster())
	if len(checks) == 0 {
		return nil
	}
	content, found := s.graph.Get(clusterRef(o.ref.Namespace, o.cluster()))
	if !found {
		return nil
	}
	cluster, isCluster := Decode[clusterv1.Cluster](content)
	machine, isMachine := Decode[clusterv1.Machine](o.content)
	if !isCluster || !isMachine {
		return nil
	}
	return describe.UpcomingRemediation(cluster, checks, machine)
}

// healthCheckOf converts a MachineHealthCheck; nil if it is one of another Cluster or cannot be converted. [Memory]
// calls it.
func healthCheckOf(u *unstructured.Unstructured, cluster string) *clusterv1.MachineHealthCheck {
	check, ok := Decode[clusterv1.MachineHealthCheck](u)
	if !ok || check.Spec.ClusterName != cluster {
		return nil
	}
	return check
}
