package inventory

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

// Group is a group of machines that need a host each. `slipway create cluster` fills it in.
type Group struct {
	// Name describes the machines, such as "workers".
	Name  string
	Count int
	// Labels of the hosts. Empty: any host.
	Labels map[string]string
	// Installed and ControlPlane are as in [Request].
	Installed, ControlPlane bool
}

// Shortage describes how many hosts are missing for groups of machines of a namespace, with the labels that they need
// and the reasons why other hosts cannot be claimed. It is empty if each group has enough hosts, and all groups
// together have enough different hosts. For one or two groups, there is then a host for each machine; a third group
// would require a check of each pair of groups, too. No host is reserved. [Request.Choose] uses the same rules for
// claims. `slipway create cluster` calls it before it creates anything, and fails if hosts are missing.
func Shortage(namespace Namespace, hosts []*infrav1.SSHHost, groups []Group) string {
	var lines []string
	needed, listed, any := 0, 0, map[*infrav1.SSHHost]bool{}
	for _, g := range groups {
		request := Request{Namespace: namespace, Installed: g.Installed, ControlPlane: g.ControlPlane}
		if len(g.Labels) > 0 {
			request.Selector = &metav1.LabelSelector{MatchLabels: g.Labels}
		}
		free, choice := request.available(hosts)
		needed += g.Count
		if g.Count > 0 {
			for _, h := range free {
				any[h] = true
			}
		}
		if missing := g.Count - len(free); missing > 0 {
			listed += missing
			lines = append(lines, fmt.Sprintf("%s missing for %s (%s): %d needed, %d can be claimed%s", hostsAre(missing), g.Name, request.labels(), g.Count, len(free), choice.rest(namespace)))
		}
	}
	if missing := needed - len(any); missing > listed {
		lines = append(lines, fmt.Sprintf("%s missing together, because several groups need the same ones: %d needed, %d can be claimed", hostsAre(missing), needed, len(any)))
	}
	return strings.Join(lines, "; ")
}

func (r Request) labels() string {
	if r.Selector == nil {
		return "any labels"
	}
	return "labels " + metav1.FormatLabelSelector(r.Selector)
}

// rest describes the hosts that cannot be claimed.
func (c Choice) rest(namespace Namespace) string {
	switch {
	case c.Offered == 0:
		return fmt.Sprintf(", none is offered to namespace %s", namespace.Name)
	case len(c.Obstacles) == 0:
		return fmt.Sprintf(", %d of %d that are offered to namespace %s match", c.Selected, c.Offered, namespace.Name)
	}
	return ", " + c.obstacles()
}

func hostsAre(n int) string {
	if n == 1 {
		return "1 SSHHost is"
	}
	return fmt.Sprintf("%d SSHHosts are", n)
}

// Unchecked returns the names of the hosts that are offered to a namespace and were never checked, as those that were just
// added. `slipway create cluster` waits for them if there is a shortage.
func Unchecked(namespace Namespace, hosts []*infrav1.SSHHost) (names []string) {
	for _, h := range hosts {
		if h.Status.State == "" && h.DeletionTimestamp == nil && IsOffered(h, namespace) {
			names = append(names, h.Name)
		}
	}
	return names
}
