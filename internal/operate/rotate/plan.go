package rotate

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

// Plan is the plan and the progress of a rotation, which `slipway rotate authority` shows, also as JSON. It contains no
// keys.
type Plan struct {
	Cluster string `json:"cluster"`
	Phase   Phase  `json:"phase"`
	// Old and New are the CAs. New is nil if it is not generated yet, Old if it has been removed.
	Old *Certificate `json:"old,omitempty"`
	New *Certificate `json:"new,omitempty"`
	// Steps are in order of execution.
	Steps []progress.Phase `json:"steps"`
	// Problem is a problem to solve before the rotation can start or continue; empty if there is none.
	Problem string `json:"problem,omitempty"`
}

// Certificate identifies a certificate for the user.
type Certificate struct {
	Subject  string    `json:"subject"`
	NotAfter time.Time `json:"notAfter"`
	SHA256   string    `json:"sha256"`
}

func (c Certificate) String() string {
	return fmt.Sprintf("%s, valid until %s, SHA-256 %s", c.Subject, c.NotAfter.UTC().Format(time.DateOnly), c.SHA256)
}

// UnderWay reports whether the rotation has started.
func (p Plan) UnderWay() bool { return p.Phase != phaseNone }

// NeedsConfirmation reports whether an execution of the plan would start a rotation. It implements term.Plan, as Lines
// does.
func (p Plan) NeedsConfirmation() bool { return !p.UnderWay() && p.Problem == "" }

// planOf returns the plan that [Rotator.Prepare] displays before the rotation starts or continues.
func planOf(s snapshot, state rotationState, given *pki.Pair) Plan {
	p := Plan{Cluster: s.Cluster.Name, Phase: state.Phase, Old: certificate(state.signer.Cert)}
	switch {
	case state.Phase == phaseTrustBoth:
		p.New = certificate(state.other.Cert)
	case state.Phase == phaseNewSigns:
		p.Old, p.New = certificate(state.other.Cert), certificate(state.signer.Cert)
	case state.Phase == phaseNewOnly:
		p.Old, p.New = nil, certificate(state.signer.Cert)
	case given != nil:
		p.New = certificate(given.Cert)
	}
	nodes := s.nodesText()
	// The index of the step in progress. Two steps belong to each of the first two phases, the second once InEffect is
	// set.
	at := map[Phase]int{phaseNone: -1, phaseTrustBoth: 0, phaseNewSigns: 2, phaseNewOnly: 4}[state.Phase]
	if state.InEffect {
		at++
	}
	p.Steps = progress.Phases(at,
		"trust both authorities: the control plane restarts in place",
		"replace "+nodes+", so that they trust the new authority",
		"sign with the new authority: the control plane restarts in place",
		"replace "+nodes+", so that the new authority signs their certificates",
		"trust only the new authority: the control plane restarts in place")
	if _, err := decide(s); err != nil {
		p.Problem = strings.TrimSpace(fault.UserMessage(err))
	}
	return p
}

func certificate(c *x509.Certificate) *Certificate {
	sum := sha256.Sum256(c.Raw)
	return &Certificate{Subject: c.Subject.String(), NotAfter: c.NotAfter, SHA256: hex.EncodeToString(sum[:])}
}

// nodesText describes the nodes to replace.
func (s snapshot) nodesText() string {
	groups := map[string]int{}
	for _, m := range s.Machines {
		switch deployment, pool := m.Labels[clusterv1.MachineDeploymentNameLabel], m.Labels[clusterv1.MachinePoolNameLabel]; {
		case deployment != "":
			groups["MachineDeployment "+deployment]++
		case pool != "":
			groups["MachinePool "+pool]++
		default:
			groups["Machine "+m.Name]++
		}
	}
	var names []string
	for name, n := range groups {
		names = append(names, fmt.Sprintf("%s: %d", name, n))
	}
	slices.Sort(names)
	switch len(s.Machines) {
	case 0:
		return "no nodes"
	case 1:
		return "1 node (" + names[0] + ")"
	}
	return fmt.Sprintf("%d nodes (%s)", len(s.Machines), strings.Join(names, ", "))
}

// Lines formats the plan for display. `slipway rotate authority` prints them before the confirmation.
func (p Plan) Lines() []string {
	out := []string{fmt.Sprintf("Rotation of the certificate authority of cluster %s:", p.Cluster)}
	if p.Old != nil {
		out = append(out, "  old: "+p.Old.String())
	}
	if p.New != nil {
		out = append(out, "  new: "+p.New.String())
	}
	out = append(out, progress.PhaseLines(p.Steps)...)
	if p.Problem != "" {
		return append(out, "  "+strings.ToUpper(p.Problem[:1])+p.Problem[1:]+".")
	}
	return append(out, fmt.Sprintf("  Kubeconfigs from before step 1 are rejected from step 3 on, and kubeconfigs from before step 3 from step 5 on: after step 3, get new ones "+
		"(slipway get kubeconfig %s).", p.Cluster))
}
